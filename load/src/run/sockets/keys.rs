//! The fields of `struct tcp_info` (`include/uapi/linux/tcp.h`) with offset and unit.

use super::value::SocketValue;

/// A field of a socket's `struct tcp_info`.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name in files: the name in `ss`, or the one that scripts around `ss` usually give it.
    pub name: &'static str,
    /// Offset of the field, in bytes.
    at: usize,
    width: usize,
    /// Unit in the kernel.
    unit: ValueUnit,
    /// Value that means "not available".
    none: Option<u64>,
}

/// Unit of a field, and its conversion.
#[derive(Clone, Copy, Debug)]
enum ValueUnit {
    /// A count: unchanged.
    Count,
    /// Milliseconds: unchanged.
    Ms,
    /// Microseconds: to milliseconds.
    Us,
    /// Bytes per second: to bits per second.
    BytesPerS,
}

const fn key(name: &'static str, at: usize, width: usize, unit: ValueUnit) -> Key {
    Key { name, at, width, unit, none: None }
}

const fn with_none_value(none: u64, mut key: Key) -> Key {
    key.none = Some(none);
    key
}

/// The smoothed round trip.
pub const RTT: Key = with_none_value(0, key("rtt", 68, 4, ValueUnit::Us));
/// The segment size, in bytes.
pub const MSS: Key = key("mss", 16, 4, ValueUnit::Count);
/// The congestion window, in segments.
pub const CWND: Key = key("cwnd", 80, 4, ValueUnit::Count);
/// Recent rate at which data reached the peer.
pub const DELIVERY_RATE: Key = key("delivery_rate", 160, 8, ValueUnit::BytesPerS);
/// Number of retransmitted segments.
pub const RETRANS_TOTAL: Key = key("retrans_total", 100, 4, ValueUnit::Count);

/// All fields except single bits, in the order of `ss`.
pub const KEYS: [Key; 48] = [
    key("rto", 8, 4, ValueUnit::Us),
    key("backoff", 4, 1, ValueUnit::Count),
    RTT,
    key("rttvar", 72, 4, ValueUnit::Us),
    key("ato", 12, 4, ValueUnit::Us),
    MSS,
    key("pmtu", 60, 4, ValueUnit::Count),
    key("rcvmss", 20, 4, ValueUnit::Count),
    key("advmss", 84, 4, ValueUnit::Count),
    CWND,
    // The maximum signed integer: slow start has not ended yet.
    with_none_value(0x7fff_ffff, key("ssthresh", 76, 4, ValueUnit::Count)),
    key("bytessent", 200, 8, ValueUnit::Count),
    key("bytesretrans", 208, 8, ValueUnit::Count),
    key("bytesacked", 120, 8, ValueUnit::Count),
    key("bytesreceived", 128, 8, ValueUnit::Count),
    key("segsout", 136, 4, ValueUnit::Count),
    key("segsin", 140, 4, ValueUnit::Count),
    key("datasegsout", 156, 4, ValueUnit::Count),
    key("datasegsin", 152, 4, ValueUnit::Count),
    key("lastsnd", 44, 4, ValueUnit::Ms),
    key("lastrcv", 52, 4, ValueUnit::Ms),
    key("lastack", 56, 4, ValueUnit::Ms),
    with_none_value(u64::MAX, key("pacing_rate", 104, 8, ValueUnit::BytesPerS)),
    with_none_value(u64::MAX, key("max_pacing_rate", 112, 8, ValueUnit::BytesPerS)),
    DELIVERY_RATE,
    key("delivered", 192, 4, ValueUnit::Count),
    key("delivered_ce", 196, 4, ValueUnit::Count),
    key("busy", 168, 8, ValueUnit::Us),
    key("rwnd_limited", 176, 8, ValueUnit::Us),
    key("sndbuf_limited", 184, 8, ValueUnit::Us),
    key("unacked", 24, 4, ValueUnit::Count),
    key("retrans", 36, 4, ValueUnit::Count),
    RETRANS_TOTAL,
    key("lost", 32, 4, ValueUnit::Count),
    key("sacked", 28, 4, ValueUnit::Count),
    key("fackets", 40, 4, ValueUnit::Count),
    key("dsackdups", 216, 4, ValueUnit::Count),
    key("reordering", 88, 4, ValueUnit::Count),
    key("reordseen", 220, 4, ValueUnit::Count),
    with_none_value(0, key("rcvrtt", 92, 4, ValueUnit::Us)),
    key("rcvspace", 96, 4, ValueUnit::Count),
    key("rcvssthresh", 64, 4, ValueUnit::Count),
    key("notsent", 144, 4, ValueUnit::Count),
    with_none_value(u32::MAX as u64, key("minrtt", 148, 4, ValueUnit::Us)),
    key("rcv_ooopack", 224, 4, ValueUnit::Count),
    key("sndwnd", 228, 4, ValueUnit::Count),
    key("rcv_wnd", 232, 4, ValueUnit::Count),
    key("rehash", 236, 4, ValueUnit::Count),
];

impl Key {
    /// Reads the field from the bytes of `TCP_INFO`; `None` if an older kernel's are too short, or
    /// the field is not available.
    pub fn read_value(&self, info: &[u8]) -> Option<SocketValue<'static>> {
        let whole = self.raw_value(info)?;
        Some(match self.unit {
            ValueUnit::Count | ValueUnit::Ms => SocketValue::Whole(whole),
            ValueUnit::Us => SocketValue::Decimal(whole as f64 / 1e3),
            ValueUnit::BytesPerS => SocketValue::Whole(whole.saturating_mul(8)),
        })
    }

    /// The value of the field in the kernel's unit; `None` if it is not available.
    pub fn raw_value(&self, info: &[u8]) -> Option<u64> {
        let bytes = info.get(self.at..self.at + self.width)?;
        let whole = match *bytes {
            [byte] => byte.into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        };
        (self.none != Some(whole)).then_some(whole)
    }
}
