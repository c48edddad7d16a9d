//! Chooses the address of each connection.
//!
//! A thread's first connection finds a working address: it tries the family of the resolver's first address, then the
//! other family. The family of the first address that accepts is used for all connections, which take its addresses in
//! turn across all threads. An address that refuses before it ever worked is dropped, unless it is the last one.

use std::net::SocketAddr;

use rustix::io::Errno;

/// A target's addresses, and one thread's experience with them.
#[derive(Clone, Debug)]
pub struct Routes {
    routes: Vec<Route>,
    next: usize,
    /// True if an address has accepted a connection, which settles the family.
    found: bool,
    /// The only address to use, once a script has chosen one.
    only: Option<RouteId>,
}

/// Identifies an address of a [`Routes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteId(usize);

#[derive(Clone, Copy, Debug)]
struct Route {
    address: SocketAddr,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not tried yet.
    Untried,
    /// The address has accepted a connection.
    Worked,
    /// The address refused before it ever worked.
    Dropped(Errno),
    /// The address family is not used.
    OtherFamily,
}

impl Routes {
    /// Routes to these addresses, in the resolver's order, at least one. `first_connection` is the run-wide number of
    /// the thread's first connection, which determines its starting point among the addresses.
    pub fn new(addresses: &[SocketAddr], first_connection: usize) -> Self {
        let is_v4 = addresses.first().expect("a target has at least one address").is_ipv4();
        let (mut first, mut other): (Vec<_>, Vec<_>) = addresses.iter().partition(|address| address.is_ipv4() == is_v4);
        for family in [&mut first, &mut other] {
            let turn = first_connection % family.len().max(1);
            family.rotate_left(turn);
        }
        let routes = first.into_iter().chain(other).map(|address| Route { address, state: State::Untried }).collect();
        Self { routes, next: 0, found: false, only: None }
    }

    pub fn has_working_address(&self) -> bool {
        self.found
    }

    /// True if more than one address may still be tried.
    pub fn has_choice(&self) -> bool {
        self.only.is_none() && self.usable_routes().count() > 1
    }

    /// Directs all further connections to this address, even if it refuses or is not one of the target's.
    pub fn direct_to(&mut self, address: SocketAddr) {
        let known = self.routes.iter().position(|route| route.address == address);
        let index = known.unwrap_or_else(|| {
            self.routes.push(Route { address, state: State::Untried });
            self.routes.len() - 1
        });
        self.only = Some(RouteId(index));
    }

    /// The address for the next connection.
    pub fn choose_route(&mut self) -> (RouteId, SocketAddr) {
        if let Some(id) = self.only {
            return (id, self.address(id));
        }
        let turn = if self.found { self.next % self.usable_routes().count() } else { 0 };
        self.next = if self.found { self.next.wrapping_add(1) } else { 1 };
        let index = self.usable_routes().nth(turn).expect("the last usable address is never dropped");
        (RouteId(index), self.routes[index].address)
    }

    /// Records that an address accepted a connection.
    pub fn note_accepted(&mut self, id: RouteId) {
        self.routes[id.0].state = State::Worked;
        if self.found {
            return;
        }
        self.found = true;
        let family = self.routes[id.0].address.is_ipv4();
        for route in &mut self.routes {
            if route.state == State::Untried && route.address.is_ipv4() != family {
                route.state = State::OtherFamily;
            }
        }
    }

    /// Records that an address refused a connection. Returns true if the address was dropped before it ever worked, so
    /// that another one can be tried at once.
    pub fn drop_after_refusal(&mut self, id: RouteId, errno: Errno) -> bool {
        match self.routes[id.0].state {
            _ if self.only.is_some() => return false,
            State::Untried if self.has_choice() => self.routes[id.0].state = State::Dropped(errno),
            State::Dropped(_) => {}
            State::Untried | State::Worked | State::OtherFamily => return false,
        }
        true
    }

    /// Tries all addresses again, from the first, after none accepted.
    pub fn retry_all(&mut self) {
        if !self.found {
            self.routes.iter_mut().for_each(|route| route.state = State::Untried);
        }
    }

    /// The address of a route.
    pub fn address(&self, id: RouteId) -> SocketAddr {
        self.routes[id.0].address
    }

    /// The dropped addresses and the error numbers of their refusals; empty unless another address worked.
    pub fn dropped_addresses(&self) -> Vec<(SocketAddr, i32)> {
        let reason = |route: &Route| match route.state {
            State::Dropped(errno) if self.found => Some((route.address, errno.raw_os_error())),
            _ => None,
        };
        self.routes.iter().filter_map(reason).collect()
    }

    /// The addresses to which a connection has been set up.
    pub fn working_addresses(&self) -> Vec<SocketAddr> {
        self.routes.iter().filter(|route| route.state == State::Worked).map(|route| route.address).collect()
    }

    fn usable_routes(&self) -> impl Iterator<Item = usize> {
        let usable = |route: &Route| matches!(route.state, State::Untried | State::Worked);
        self.routes.iter().enumerate().filter(move |(_, route)| usable(route)).map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(addresses: &[&str]) -> Routes {
        Routes::new(&addresses.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>(), 0)
    }

    fn turns(routes: &mut Routes, n: usize) -> Vec<String> {
        (0..n).map(|_| routes.choose_route().1.to_string()).collect()
    }

    #[test]
    fn first_accepting_address_decides_the_family() {
        let mut routes = routes(&["[::1]:80", "127.0.0.1:80", "[::2]:80", "127.0.0.2:80"]);
        let (first, address) = routes.choose_route();
        assert_eq!(address.to_string(), "[::1]:80");
        assert!(routes.drop_after_refusal(first, Errno::CONNREFUSED));
        let (second, address) = routes.choose_route();
        assert_eq!(address.to_string(), "[::2]:80");
        assert!(routes.drop_after_refusal(second, Errno::CONNREFUSED));
        let (third, address) = routes.choose_route();
        assert_eq!(address.to_string(), "127.0.0.1:80");
        routes.note_accepted(third);
        assert_eq!(turns(&mut routes, 3), ["127.0.0.2:80", "127.0.0.1:80", "127.0.0.2:80"]);
        assert_eq!(routes.dropped_addresses(), ["[::1]:80", "[::2]:80"].map(|text| (text.parse().unwrap(), 111)));
        assert_eq!(routes.working_addresses(), ["127.0.0.1:80".parse().unwrap()]);
    }

    #[test]
    fn addresses_rotate_over_all_threads() {
        let addresses = ["127.0.0.1:80", "[::1]:80", "127.0.0.2:80", "127.0.0.3:80"].map(|text| text.parse().unwrap());
        let mut taken = Vec::new();
        for first_connection in [0, 2, 4] {
            let mut routes = Routes::new(&addresses, first_connection);
            for _ in 0..2 {
                let (route, address) = routes.choose_route();
                routes.note_accepted(route);
                taken.push(address.to_string());
            }
        }
        let turn = ["127.0.0.1:80", "127.0.0.2:80", "127.0.0.3:80"];
        assert_eq!(taken, [turn, turn].concat());
    }

    #[test]
    fn last_and_working_addresses_are_kept() {
        let mut routes = routes(&["127.0.0.1:80", "127.0.0.2:80"]);
        let (first, _) = routes.choose_route();
        routes.note_accepted(first);
        assert!(!routes.drop_after_refusal(first, Errno::CONNREFUSED));
        assert!(routes.drop_after_refusal(RouteId(1), Errno::CONNREFUSED));
        assert_eq!(turns(&mut routes, 2), ["127.0.0.1:80", "127.0.0.1:80"]);
    }

    #[test]
    fn all_addresses_are_retried_after_total_refusal() {
        let mut routes = routes(&["127.0.0.1:80", "127.0.0.2:80"]);
        assert!(routes.drop_after_refusal(RouteId(0), Errno::CONNREFUSED));
        assert!(!routes.drop_after_refusal(RouteId(1), Errno::CONNREFUSED));
        assert!(routes.dropped_addresses().is_empty(), "no address worked, so none was dropped for another");
        routes.retry_all();
        assert_eq!(turns(&mut routes, 1), ["127.0.0.1:80"]);
    }
}
