//! The session that a slot keeps for its next connection.
//!
//! Every slot has its own session, just as wrk keeps one per connection: concurrent connections never share one. No
//! lock is needed, because each session is used by one thread only.

use std::fmt;
use std::sync::atomic::{AtomicU16, Ordering};

use crossbeam_utils::atomic::AtomicCell;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// One slot's session, and the group its server prefers.
#[derive(Default)]
pub struct SlotSession {
    old: AtomicCell<Option<Box<Tls12ClientSessionValue>>>,
    new: AtomicCell<Option<Box<Tls13ClientSessionValue>>>,
    /// The group last chosen by the server; zero: none yet.
    group: AtomicU16,
}

const _: () = {
    assert!(AtomicCell::<Option<Box<Tls12ClientSessionValue>>>::is_lock_free());
    assert!(AtomicCell::<Option<Box<Tls13ClientSessionValue>>>::is_lock_free());
};

impl fmt::Debug for SlotSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SlotSession")
    }
}

impl ClientSessionStore for SlotSession {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.group.store(group.into(), Ordering::Relaxed);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        Some(self.group.load(Ordering::Relaxed)).filter(|group| *group != 0).map(NamedGroup::from)
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.old.store(Some(Box::new(session)));
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let session = self.old.take()?;
        let copy = (*session).clone();
        self.old.store(Some(session));
        Some(copy)
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.old.store(None);
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, session: Tls13ClientSessionValue) {
        self.new.store(Some(Box::new(session)));
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.new.take().map(|session| *session)
    }
}
