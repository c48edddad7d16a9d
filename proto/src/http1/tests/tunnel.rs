//! A tunnel through a proxy, without the proxy: every response at every split.

use crate::http1::{Tunnel, Wire};
use crate::{Error, RequestParts};

/// The status, and the number of bytes up to the end of the head.
type Answered = Result<Option<(u16, usize)>, Error>;

fn tunnel() -> Tunnel {
    let connect = RequestParts { method: "CONNECT".into(), target: "h:443".into(), ..RequestParts::default() };
    Tunnel::new(&Wire::from_parts(&connect))
}

/// The outcome of a response that arrives in pieces.
fn answered(pieces: &[&[u8]]) -> Answered {
    let (mut tunnel, mut before) = (tunnel(), 0);
    for piece in pieces {
        if let Some((status, used)) = tunnel.handle_bytes(piece)? {
            return Ok(Some((status, before + used)));
        }
        before += piece.len();
    }
    Ok(None)
}

#[test]
fn proxy_responses_do_not_depend_on_splits() {
    let table: [(&[u8], Answered); 16] = [
        (b"HTTP/1.1 200 OK\r\n\r\n", Ok(Some((200, 19)))),
        (b"HTTP/1.0 200 Connection established\r\nProxy-agent: x\r\n\r\n", Ok(Some((200, 55)))),
        (b"HTTP/1.1 299 \r\n\r\n\x16\x03\x03early", Ok(Some((299, 17)))),
        // A length is ignored: later bytes are the target's.
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Ok(Some((200, 38)))),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Ok(Some((200, 47)))),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello", Ok(Some((200, 66)))),
        (b"HTTP/1.1 200 OK\r\nVia: a,\r\n b\r\n\r\nhello", Ok(Some((200, 32)))),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Ok(Some((200, 44)))),
        (b"HTTP/1.1 407 Login\r\nContent-Length: 9\r\n\r\n<h1>Login", Ok(Some((407, 41)))),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", Ok(Some((302, 35)))),
        (b"HTTP/1.1 101 Switching\r\n\r\n", Err(Error::Switched)),
        (b"HTTP/1.1 200 OK\r\n", Ok(None)),
        (b"", Ok(None)),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Err(Error::NotHttp)),
        (b"\x15\x03\x01\x00\x02\x02\x46", Err(Error::SpeaksTls)),
        (b"HTTP/1.1 200 OK\r\nbad field\r\n\r\n", Err(Error::HeaderField)),
    ];
    for (answer, expected) in table {
        assert_eq!(answered(&[answer]), expected, "{:?}", String::from_utf8_lossy(answer));
        for split in 0..answer.len() {
            let (first, rest) = answer.split_at(split);
            assert_eq!(answered(&[first, rest]), expected, "{split} of {:?}", String::from_utf8_lossy(answer));
        }
        let bytes: Vec<&[u8]> = answer.chunks(1).collect();
        assert_eq!(answered(&bytes), expected, "{:?}", String::from_utf8_lossy(answer));
    }
}

#[test]
fn endless_proxy_heads_are_refused() {
    let endless = [&b"HTTP/1.1 200 OK\r\n"[..], &b"A: b\r\n".repeat(20_000)].concat();
    let expected = Err(Error::HeadTooLong);
    assert_eq!(answered(&[&endless]), expected);
    assert_eq!(answered(&endless.chunks(1000).collect::<Vec<_>>()), expected);
}

#[test]
fn connect_requests_are_sent_once() {
    let mut tunnel = tunnel();
    let transmit = tunnel.poll_transmit().expect("there is something to send");
    assert_eq!(*transmit.bytes(), *b"CONNECT h:443 HTTP/1.1\r\n\r\n");
    assert!(tunnel.poll_transmit().is_none());
    tunnel.handle_sent(5);
    assert!(!tunnel.is_sent());
    tunnel.handle_sent(transmit.bytes().len() - 5);
    assert!(tunnel.is_sent());
}
