//! Responses of the paths that need more than a line of code.

use std::time::Duration;

use super::ask::RequestContext;
use super::capacity;
use super::freeze::Rhythm;
use super::places::AdmissionLimit;
use super::request::Persistence;
use super::response::{AfterResponse, HELLO, Response, ResponseForm, ResponseStart};
use super::service::{ServiceDistribution, WAIT_MAX};
use super::stream::{BodyStream, Drip};

/// A response, or the error in the argument or query.
type ResponseResult = Result<Response, String>;

/// Maximum length of a body, in bytes: enough for minutes of transfer.
const BODY_BYTES_MAX: u64 = 10 << 30;

/// A body with the number of bytes given in the argument.
pub(super) fn bytes_response(ask: &RequestContext) -> ResponseResult {
    let left = parse_length(ask.argument)?;
    Ok(Response::streamed_response(format!("Content-Length: {left}\r\n"), BodyStream::Block { left }, ask.manner))
}

/// The greeting, after the delay in milliseconds given in the argument. With a query, that is the mean of random
/// delays.
pub(super) fn delay_response(ask: &RequestContext) -> ResponseResult {
    let mean = parse_wait(ask.argument, MILLISECOND)?;
    let time = if ask.query.is_empty() { mean } else { draw_service_time(ask, parse_service_times(ask, mean)?) };
    Ok(Response::greeting_response(ask.manner).delayed_by(time))
}

/// The status given in the argument, with what HTTP requires: no body, a `Location`, or, for an interim status, a final
/// response after it.
pub(super) fn status_response(ask: &RequestContext) -> ResponseResult {
    let status = match ask.argument.parse() {
        Ok(status @ 100..=999) => status,
        _ => return Err(format!("{:?} is not a status from 100 to 999", ask.argument)),
    };
    let manner = ask.manner;
    Ok(match status {
        100..=199 => Response::greeting_response(manner).with_interim_response(status, ""),
        204 | 304 => Response::new(status, "", &[][..], manner),
        300..=399 => Response::new(status, "Location: /\r\nContent-Length: 0\r\n", &[][..], manner),
        _ => Response::text_response(status, format!("{status}\n").into_bytes(), manner),
    })
}

/// A chunked body with the number of content bytes given in the argument.
pub(super) fn chunked_response(ask: &RequestContext) -> ResponseResult {
    let stream = BodyStream::Chunks { left: parse_length(ask.argument)?, first: true };
    Ok(Response::streamed_response("Transfer-Encoding: chunked\r\nTrailer: X-Trail\r\n", stream, ask.manner))
}

/// A body sent bit by bit, with httpbin's names and defaults, except for a default delay of zero.
pub(super) fn drip_response(ask: &RequestContext) -> ResponseResult {
    let total = parse_length(ask.query_value(&["bytes", "numbytes"]).unwrap_or("10"))?;
    let span = match ask.query_value(&["ms"]) {
        Some(text) => parse_wait(text, MILLISECOND)?,
        None => parse_wait(ask.query_value(&["duration"]).unwrap_or("2"), SECOND)?,
    };
    let delay = parse_wait(ask.query_value(&["delay"]).unwrap_or("0"), SECOND)?;
    let framing = format!("Content-Length: {total}\r\n");
    Ok(Response::streamed_response(framing, BodyStream::Drip(Drip::new(total, span)), ask.manner).delayed_by(delay))
}

/// The greeting, with `Connection: close`.
pub(super) fn close_response(ask: &RequestContext) -> ResponseResult {
    Ok(Response::greeting_response(ask.manner.announcing_close()))
}

/// The greeting, after which the connection closes although no `Connection: close` announced it.
pub(super) fn unannounced_close_response(ask: &RequestContext) -> ResponseResult {
    Ok(Response { end: AfterResponse::CloseUntold, ..Response::greeting_response(ask.manner) })
}

/// Bytes that are not HTTP, from the first one on.
pub(super) fn garbage_response(_: &RequestContext) -> ResponseResult {
    let message = ResponseStart::Garbage(b"\x00\xffthis is not HTTP\r\n\r\n");
    Ok(Response { message, ..Response::empty_response(AfterResponse::CloseUntold) })
}

/// The greeting. Every tenth request on a connection (`every`) is delayed by a second (`ms`).
pub(super) fn stall_response(ask: &RequestContext) -> ResponseResult {
    let pause = parse_wait(ask.query_value(&["ms"]).unwrap_or("1000"), MILLISECOND)?;
    let stalls = ask.is_chosen(ask.numbers.request)?;
    Ok(Response::greeting_response(ask.manner).delayed_by(if stalls { pause } else { Duration::ZERO }))
}

/// The greeting: fast on every tenth connection of a thread (`every`), slow on the others.
pub(super) fn mixed_response(ask: &RequestContext) -> ResponseResult {
    let quick = parse_wait(ask.query_value(&["ms"]).unwrap_or("0.1"), MILLISECOND)?;
    let slow = parse_wait(ask.query_value(&["rest"]).unwrap_or("1000"), MILLISECOND)?;
    let is_quick = ask.is_chosen(ask.numbers.connection)?;
    Ok(Response::greeting_response(ask.manner).delayed_by(if is_quick { quick } else { slow }))
}

/// The greeting. From then on, the whole target stops responding for a while at regular intervals.
pub(super) fn freeze_response(ask: &RequestContext) -> ResponseResult {
    let text = ask.query_value(&["every"]).unwrap_or("5s");
    let (count, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(count), _) => (count, MILLISECOND),
        (None, Some(count)) => (count, SECOND),
        (None, None) => return Err(format!("{text:?} is not a time with a unit, such as 5s or 500ms")),
    };
    let every = parse_wait(count, unit)?;
    let length = parse_wait(ask.query_value(&["ms"]).unwrap_or("1000"), MILLISECOND)?;
    if length >= every {
        return Err(format!("a freeze of {} ms every {text} would never end", length.as_millis()));
    }
    ask.resources.common.freeze.record_request(Rhythm { every, length });
    Ok(Response::greeting_response(ask.manner))
}

/// The greeting, once the request has passed through the queue of the whole target.
pub(super) fn capacity_response(ask: &RequestContext) -> ResponseResult {
    let number = |name, most: f64| {
        let text = ask.query_value(&[name]).unwrap_or("0");
        let number = text.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number));
        number.ok_or_else(|| format!("{name}: {text:?} is not a number up to {most}"))
    };
    let per_s = number("rps", RATE_MAX)?;
    let spread = number("sd", SPREAD_MAX)?;
    if per_s < RATE_MIN {
        return Err(format!("rps (requests per second) is missing or below {RATE_MIN}; try /capacity?rps=500"));
    }
    let service = capacity::QueueService { mean_s: 1.0 / per_s, spread };
    Ok(Response::greeting_response(ask.manner).delayed_by(ask.resources.common.capacity.enter_queue(service)))
}

/// The greeting, once one of the workers has served the request.
pub(super) fn pool_response(ask: &RequestContext) -> ResponseResult {
    let workers = parse_place_count(ask, "workers", "/pool?workers=4&ms=5")?;
    let ms = ask.query_value(&["ms"]).ok_or("ms (time per request) is missing; try /pool?workers=4&ms=5")?;
    let service = parse_service_times(ask, parse_wait(ms, MILLISECOND)?)?;
    Ok(Response::greeting_response(ask.manner)
        .delayed_by(draw_service_time(ask, service))
        .with_limit(AdmissionLimit::Pool { workers, service }))
}

/// The greeting, once the connection is one of those being served.
pub(super) fn prefork_response(ask: &RequestContext) -> ResponseResult {
    let serves = parse_place_count(ask, "serves", "/prefork?serves=4")?;
    let service = parse_service_times(ask, parse_wait(ask.query_value(&["ms"]).unwrap_or("0"), MILLISECOND)?)?;
    Ok(Response::greeting_response(ask.manner)
        .delayed_by(draw_service_time(ask, service))
        .with_limit(AdmissionLimit::Prefork { serves }))
}

/// Parses a number of places from the query; `example` is a valid request, for the error.
fn parse_place_count(ask: &RequestContext, name: &str, example: &str) -> Result<u32, String> {
    let text = ask.query_value(&[name]).ok_or_else(|| format!("{name} is missing; try {example}"))?;
    let number = text.parse().ok().filter(|number| (1..=PLACES_MAX).contains(number));
    number.ok_or_else(|| format!("{name}: {text:?} is not a whole number from 1 to {PLACES_MAX}"))
}

/// The service-time distribution of the query, given its `ms`.
fn parse_service_times(ask: &RequestContext, ms: Duration) -> Result<ServiceDistribution, String> {
    let time = |name| {
        let time = |text| parse_wait(text, MILLISECOND).map_err(|why| format!("{name}: {why}"));
        ask.query_value(&[name]).map(time).transpose()
    };
    match (ask.query_value(&["dist"]), time("sd")?, time("slow")?) {
        (None, None | Some(Duration::ZERO), None) => Ok(ServiceDistribution::Constant(ms)),
        (None, Some(sd), None) if sd <= ms.mul_f64(SPREAD_MAX) => Ok(ServiceDistribution::LogNormal { mean: ms, sd }),
        (None, Some(_), None) => Err(format!("sd is more than {SPREAD_MAX} times the mean")),
        (Some("exp"), None, None) => Ok(ServiceDistribution::Exponential(ms)),
        (Some("two"), None, Some(slow)) => Ok(ServiceDistribution::Two { quick: ms, slow }),
        (Some("two"), None, None) => {
            Err("dist=two needs slow (the time of the slow half); try dist=two&slow=50".into())
        }
        (Some("exp" | "two"), Some(_), _) => Err("sd is for log-normal times; leave out dist".into()),
        (None | Some("exp"), _, Some(_)) => Err("slow needs dist=two".into()),
        (Some(other), ..) => Err(format!("dist: {other:?} is neither exp nor two; leave it out for log-normal times")),
    }
}

/// Draws the service time of this request.
fn draw_service_time(ask: &RequestContext, service: ServiceDistribution) -> Duration {
    service.draw_service_time(&mut ask.resources.random.borrow_mut())
}

/// A body delimited by the close of the connection.
pub(super) fn eof_response(ask: &RequestContext) -> ResponseResult {
    // The body has no length, so the head must announce the close.
    Ok(Response::new(200, "", HELLO, ask.manner.announcing_close()))
}

/// The greeting of an HTTP/1.0 server, with `Connection: keep-alive` if the connection stays open.
pub(super) fn http10_response(ask: &RequestContext) -> ResponseResult {
    let keeps_alive = ask.query == "keep-alive" && ask.manner.persistence != Persistence::Close;
    let persistence = if keeps_alive { Persistence::KeepAliveTold } else { Persistence::KeepAlive };
    let response = Response::greeting_response(ResponseForm { persistence, ..ask.manner }).into_http10();
    Ok(Response { end: if keeps_alive { AfterResponse::Next } else { AfterResponse::Close }, ..response })
}

/// An interim response with a field, then the greeting.
pub(super) fn early_hints_response(ask: &RequestContext) -> ResponseResult {
    Ok(Response::greeting_response(ask.manner)
        .with_interim_response(103, "Link: </style.css>; rel=preload; as=style\r\n"))
}

/// An unsolicited 100, then the greeting.
pub(super) fn unasked_continue_response(ask: &RequestContext) -> ResponseResult {
    Ok(Response::greeting_response(ask.manner).with_interim_response(100, ""))
}

/// A 413 sent without waiting for the body.
pub(super) fn early_413_response(ask: &RequestContext) -> Response {
    Response::text_response(413, &b"too large\n"[..], ask.manner)
}

/// The greeting, followed by stray bytes. Over HTTP/1.1 they belong to no request; over HTTP/2 the body is too long.
pub(super) fn extra_bytes_response(ask: &RequestContext) -> ResponseResult {
    let mut response = Response::greeting_response(ask.manner);
    if let ResponseStart::Http(_, body) = &mut response.message {
        body.to_mut().extend_from_slice(b"stray");
    }
    Ok(response)
}

/// A head that never ends.
pub(super) fn endless_head_response(_: &RequestContext) -> ResponseResult {
    let stream = Some(BodyStream::EndlessHead);
    Ok(Response { message: ResponseStart::EndlessHead, stream, ..Response::empty_response(AfterResponse::CloseUntold) })
}

pub(super) fn bad_length_response(_: &RequestContext) -> ResponseResult {
    Ok(malformed_response("Content-Length: -13\r\n", HELLO))
}

/// A response with two contradictory lengths.
pub(super) fn two_lengths_response(_: &RequestContext) -> ResponseResult {
    Ok(malformed_response("Content-Length: 13\r\nContent-Length: 12\r\n", HELLO))
}

/// Both ways to frame a body, as in request smuggling.
pub(super) fn length_and_chunked_response(_: &RequestContext) -> ResponseResult {
    let fields = "Content-Length: 13\r\nTransfer-Encoding: chunked\r\n";
    Ok(with_broken_chunks(malformed_response(fields, b"d\r\nHello, World!\r\n0\r\n\r\n")))
}

/// A valid chunk, then one whose size is missing.
pub(super) fn bad_chunk_response(_: &RequestContext) -> ResponseResult {
    Ok(with_broken_chunks(malformed_response("Transfer-Encoding: chunked\r\n", b"d\r\nHello, World!\r\nzz\r\n")))
}

/// A response that no client should accept. The close is not announced, so a client that accepts the response
/// continues.
fn malformed_response(fields: &'static str, body: &'static [u8]) -> Response {
    let manner = ResponseForm { head_only: false, persistence: Persistence::KeepAlive };
    Response { end: AfterResponse::CloseUnframed, ..Response::new(200, fields, body, manner) }
}

/// Breaks the chunks of a response, which HTTP/2 cannot express.
fn with_broken_chunks(response: Response) -> Response {
    let mut bytes = Vec::new();
    response.message.write_http1(&mut bytes);
    Response { message: ResponseStart::BrokenChunks(bytes), ..response }
}

/// Minimum and maximum rate of a queue, in requests per second: a service time from a nanosecond to 100 seconds.
const RATE_MIN: f64 = 0.01;
const RATE_MAX: f64 = 1e9;

/// Maximum standard deviation of the service time, as a share of its mean.
const SPREAD_MAX: f64 = 10.0;

/// Maximum number of workers of a pool, and of connections served at a time.
const PLACES_MAX: u32 = 4096;

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

fn parse_length(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(bytes @ 0..=BODY_BYTES_MAX) => Ok(bytes),
        _ => Err(format!("{text:?} is not a number of bytes from 0 to {BODY_BYTES_MAX}")),
    }
}

/// Parses a time in `unit`; fractions are allowed.
fn parse_wait(text: &str, unit: Duration) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().map(|count| count * unit.as_secs_f64());
    match seconds.map(Duration::try_from_secs_f64) {
        Some(Ok(wait)) if wait <= WAIT_MAX => Ok(wait),
        _ => Err(format!("{text:?} is not a time of at most an hour, in {}", if unit == SECOND { "s" } else { "ms" })),
    }
}
