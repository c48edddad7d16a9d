//! The keys of a socket's `struct tcp_info` (`include/uapi/linux/tcp.h`), with the position and the unit of each.

use super::value::Value;

/// A figure of a socket's `struct tcp_info`.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in files: `ss`'s name, or the usual one of scripts around `ss`.
    pub name: &'static str,
    /// Its offset, in bytes.
    at: usize,
    width: usize,
    /// The kernel's unit.
    unit: Unit,
    /// The value that means that there is no figure.
    none: Option<u64>,
}

/// The unit of a figure, and its conversion.
#[derive(Clone, Copy, Debug)]
enum Unit {
    /// A count: unchanged.
    Count,
    /// Milliseconds: unchanged.
    Ms,
    /// Microseconds: to milliseconds.
    Us,
    /// Bytes per second: to bits per second.
    BytesPerS,
}

const fn key(name: &'static str, at: usize, width: usize, unit: Unit) -> Key {
    Key { name, at, width, unit, none: None }
}

const fn unless(none: u64, mut key: Key) -> Key {
    key.none = Some(none);
    key
}

/// The smoothed round trip.
pub const RTT: Key = unless(0, key("rtt", 68, 4, Unit::Us));
/// The segment size.
pub const MSS: Key = key("mss", 16, 4, Unit::Count);
/// The congestion window, in segments.
pub const CWND: Key = key("cwnd", 80, 4, Unit::Count);
/// How fast data has arrived at the peer lately.
pub const DELIVERY_RATE: Key = key("delivery_rate", 160, 8, Unit::BytesPerS);
/// Segments that were retransmitted.
pub const RETRANS_TOTAL: Key = key("retrans_total", 100, 4, Unit::Count);

/// All figures but single bits, in the order in which `ss` prints them.
pub const KEYS: [Key; 48] = [
    key("rto", 8, 4, Unit::Us),
    key("backoff", 4, 1, Unit::Count),
    RTT,
    key("rttvar", 72, 4, Unit::Us),
    key("ato", 12, 4, Unit::Us),
    MSS,
    key("pmtu", 60, 4, Unit::Count),
    key("rcvmss", 20, 4, Unit::Count),
    key("advmss", 84, 4, Unit::Count),
    CWND,
    // The largest signed number: slow start has not ended yet.
    unless(0x7fff_ffff, key("ssthresh", 76, 4, Unit::Count)),
    key("bytessent", 200, 8, Unit::Count),
    key("bytesretrans", 208, 8, Unit::Count),
    key("bytesacked", 120, 8, Unit::Count),
    key("bytesreceived", 128, 8, Unit::Count),
    key("segsout", 136, 4, Unit::Count),
    key("segsin", 140, 4, Unit::Count),
    key("datasegsout", 156, 4, Unit::Count),
    key("datasegsin", 152, 4, Unit::Count),
    key("lastsnd", 44, 4, Unit::Ms),
    key("lastrcv", 52, 4, Unit::Ms),
    key("lastack", 56, 4, Unit::Ms),
    unless(u64::MAX, key("pacing_rate", 104, 8, Unit::BytesPerS)),
    unless(u64::MAX, key("max_pacing_rate", 112, 8, Unit::BytesPerS)),
    DELIVERY_RATE,
    key("delivered", 192, 4, Unit::Count),
    key("delivered_ce", 196, 4, Unit::Count),
    key("busy", 168, 8, Unit::Us),
    key("rwnd_limited", 176, 8, Unit::Us),
    key("sndbuf_limited", 184, 8, Unit::Us),
    key("unacked", 24, 4, Unit::Count),
    key("retrans", 36, 4, Unit::Count),
    RETRANS_TOTAL,
    key("lost", 32, 4, Unit::Count),
    key("sacked", 28, 4, Unit::Count),
    key("fackets", 40, 4, Unit::Count),
    key("dsackdups", 216, 4, Unit::Count),
    key("reordering", 88, 4, Unit::Count),
    key("reordseen", 220, 4, Unit::Count),
    unless(0, key("rcvrtt", 92, 4, Unit::Us)),
    key("rcvspace", 96, 4, Unit::Count),
    key("rcvssthresh", 64, 4, Unit::Count),
    key("notsent", 144, 4, Unit::Count),
    unless(u32::MAX as u64, key("minrtt", 148, 4, Unit::Us)),
    key("rcv_ooopack", 224, 4, Unit::Count),
    key("sndwnd", 228, 4, Unit::Count),
    key("rcv_wnd", 232, 4, Unit::Count),
    key("rehash", 236, 4, Unit::Count),
];

impl Key {
    /// Reads the figure from `TCP_INFO`, which is shorter on older kernels; `None`: there is none.
    pub fn read(&self, info: &[u8]) -> Option<Value<'static>> {
        let whole = self.raw(info)?;
        Some(match self.unit {
            Unit::Count | Unit::Ms => Value::Whole(whole),
            Unit::Us => Value::Decimal(whole as f64 / 1e3),
            Unit::BytesPerS => Value::Whole(whole.saturating_mul(8)),
        })
    }

    /// The figure in the kernel's unit.
    pub fn raw(&self, info: &[u8]) -> Option<u64> {
        let bytes = info.get(self.at..self.at + self.width)?;
        let whole = match *bytes {
            [byte] => byte.into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        };
        (self.none != Some(whole)).then_some(whole)
    }
}
