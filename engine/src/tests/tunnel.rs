//! Responses to a tunnel request.

use onrush_proto::Error;
use onrush_proto::http1::Wire;
use onrush_stats::ProxyFailure;

use super::*;
use crate::slot::{Slot, State};
use crate::tunnel::Tunnel;

/// The outcome of a response that arrives when `accepted` bytes of the request have been accepted.
fn answered(accepted: usize, answer: &[u8]) -> Result<Option<usize>, ProxyFailure> {
    let connect = RequestParts { method: "CONNECT".into(), target: "h:443".into(), ..RequestParts::default() };
    let tunnel = Tunnel::new(Nanos::default(), &Wire::from_parts(&connect));
    let mut slot = Slot { state: State::Tunnelling(Box::new(tunnel)), ..Slot::default() };
    slot.on_accepted(accepted);
    match &mut slot.state {
        State::Tunnelling(tunnel) => tunnel.receive(answer),
        _ => unreachable!("the slot was not changed"),
    }
}

const WHOLE: usize = "CONNECT h:443 HTTP/1.1\r\n\r\n".len();

#[test]
fn only_success_opens_a_tunnel() {
    assert_eq!(answered(WHOLE, b"HTTP/1.1 200 OK\r\n\r\nbehind"), Ok(Some(19)));
    assert_eq!(answered(WHOLE, b"HTTP/1.1 200 OK\r\n"), Ok(None));
    assert_eq!(answered(WHOLE, b"HTTP/1.1 407 Login\r\n\r\n"), Err(ProxyFailure::Status(407)));
    assert_eq!(answered(WHOLE, b"SSH"), Err(ProxyFailure::Answer(Error::NotHttp)));
}

#[test]
fn partial_tunnel_requests_open_nothing() {
    assert_eq!(answered(WHOLE - 1, b"HTTP/1.1 200 OK\r\n\r\n"), Err(ProxyFailure::Early));
}
