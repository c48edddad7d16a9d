//! Peers that the embedded target cannot imitate: ports that refuse or stay silent, and servers of a few lines.

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

/// A port that refuses connections, and that no other process can take while this exists.
pub struct RefusingPort {
    _socket: OwnedFd,
    pub address: SocketAddr,
}

impl RefusingPort {
    /// Takes a port: bound, but not listening.
    pub fn new() -> Self {
        let (socket, address) = bound(false);
        Self { _socket: socket, address }
    }
}

/// A port for a server in another process, reserved while this exists.
pub struct ReservedPort {
    _socket: OwnedFd,
    pub address: SocketAddr,
}

impl ReservedPort {
    /// Takes a port. It refuses connections until the server listens; the server can bind it because servers reuse
    /// addresses.
    pub fn new() -> Self {
        let (socket, address) = bound(true);
        Self { _socket: socket, address }
    }
}

/// A port on which connection attempts get no reply.
pub struct Silent {
    socket: OwnedFd,
    _waiting: Vec<TcpStream>,
    pub address: SocketAddr,
}

impl Silent {
    /// Listens without accepting, and fills the accept queue.
    pub fn new() -> Self {
        let (socket, address) = bound(false);
        listen(&socket, 0).expect("a socket can listen");
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok();
        let waiting: Vec<TcpStream> = (0..32).map_while(connect).collect();
        assert!(waiting.len() < 32, "the queue has an end");
        Self { socket, _waiting: waiting, address }
    }
}

/// A server whose accept queue is full until a client tries to connect. Afterwards, it calls `serve` with every
/// accepted connection.
pub fn crowded(serve: fn(TcpStream) -> io::Result<()>) -> SocketAddr {
    let silent = Silent::new();
    let address = silent.address;
    thread::spawn(move || {
        // Remote address and state of a socket that has sent a SYN.
        let tries = format!(":{:04X} 02 ", address.port());
        while !fs::read_to_string("/proc/net/tcp").is_ok_and(|sockets| sockets.contains(&tries)) {
            thread::sleep(Duration::from_millis(10));
        }
        let listener = TcpListener::from(silent.socket);
        for stream in listener.incoming().flatten() {
            thread::spawn(move || drop(serve(stream)));
        }
    });
    address
}

fn bound(is_shared: bool) -> (OwnedFd, SocketAddr) {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket can be made");
    set_socket_reuseaddr(&socket, is_shared).expect("it is an option of every socket");
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port can be bound");
    let address = getsockname(&socket).expect("the port is known").try_into().expect("an IPv4 address");
    (socket, address)
}

/// A server that calls `serve` with every connection, each in a separate thread; runs as long as the process.
pub fn server(serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> SocketAddr {
    server_at(TcpListener::bind("127.0.0.1:0").expect("a port can be bound"), serve)
}

/// Like [`server`], but listens on a given socket.
pub fn server_at(
    listener: TcpListener,
    serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> SocketAddr {
    let address = listener.local_addr().expect("the port is known");
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            // A client that leaves is not an error of the server.
            thread::spawn(move || drop(serve(stream)));
        }
    });
    address
}

/// A server on a Unix socket that responds to every request with `hi`; runs as long as the process.
pub fn unix(path: &Path) {
    let listener = UnixListener::bind(path).expect("a socket can be made");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || -> io::Result<()> {
                let mut stream = BufReader::new(stream);
                loop {
                    let head = read_head(&mut stream)?;
                    let body = if head.starts_with("GET /large ") { "x".repeat(1 << 20) } else { "hi".to_owned() };
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                    stream.get_mut().write_all(answer.as_bytes())?;
                }
            });
        }
    });
}

/// An address on which another process can listen. Each is in a separate part of the loopback network, from which no
/// connection originates.
pub fn free_address() -> SocketAddr {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let [high, low] = GIVEN.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let of_process = std::process::id() as u8;
    let free = TcpListener::bind((Ipv4Addr::new(127, 128 | of_process, high, low), 0));
    free.and_then(|free| free.local_addr()).expect("a port is free")
}

/// Waits until connections are accepted. Returns true if `process` accepts them, which has then not ended.
pub fn accepts(process: &mut Child, address: SocketAddr) -> bool {
    for _ in 0..2000 {
        if TcpStream::connect(address).is_ok() {
            return matches!(process.try_wait(), Ok(None));
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Reads the head of a request. Fails if the client closes the connection before its end.
pub fn read_head(stream: &mut BufReader<impl Read>) -> io::Result<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
