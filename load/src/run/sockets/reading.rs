//! A reading of one socket at one moment, under the names used in files.

use onrush_plan::filter::Subject;

use super::keys::{CWND, DELIVERY_RATE, KEYS, MSS, RETRANS_TOTAL, RTT};
use super::value::SocketValue;
use crate::run::diag::{self, u32_at};

/// Numbers of the requested attributes, and of the attributes that some congestion controls add.
const INFO: u16 = 2;
const VEGAS: u16 = 3;
const CONG: u16 = 4;
const SKMEM: u16 = 7;
const DCTCP: u16 = 9;
const BBR: u16 = 16;

/// Extension bits that request these attributes.
pub const EXTENSIONS: u8 = 1 << (INFO - 1) | 1 << (VEGAS - 1) | 1 << (CONG - 1) | 1 << (SKMEM - 1);

/// Names of the states, indexed by the kernel's numbers.
const STATES: [&str; 13] = [
    "UNKNOWN",
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "SYN-RECV",
];

/// Names of the timers, indexed by the kernel's numbers.
const TIMERS: [&str; 5] = ["off", "on", "keepalive", "timewait", "persist"];

/// Connection options and their bits.
const OPTIONS: [(&str, u8); 5] = [("ts", 1), ("sack", 2), ("ecn", 8), ("ecnseen", 16), ("fastopen", 32)];

/// Names of the socket memory fields, in the kernel's order: received and unread, limit of that; in local send queues,
/// limit of written data; reserved, written, options, backlog, dropped packets.
const MEMORY: [&str; 9] = ["r", "rb", "t", "tb", "f", "w", "o", "bl", "d"];

/// A reading of one socket, as the kernel's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketReading(Box<[u8]>);

impl SocketReading {
    /// The reading in a message of the kernel's reply; `None` if the message is too short.
    pub fn from_message(body: &[u8]) -> Option<Self> {
        diag::parse_endpoints(body).and(u32_at(body, 68)).map(|_| Self(body.into()))
    }

    /// The cookie: a number unique to this socket.
    pub fn cookie(&self) -> u64 {
        u64::from(self.info_word(48)) << 32 | u64::from(self.info_word(44))
    }

    /// The smoothed round trip, in microseconds; `None` if the kernel does not report it.
    pub fn rtt_us(&self) -> Option<u64> {
        RTT.raw_value(self.tcp_info())
    }

    /// The congestion window, in segments; `None` if the kernel does not report it.
    pub fn cwnd(&self) -> Option<u64> {
        CWND.raw_value(self.tcp_info())
    }

    /// Recent rate at which data reached the peer, in bits per second; `None` if the kernel has not measured one yet.
    pub fn delivery_bps(&self) -> Option<u64> {
        DELIVERY_RATE.raw_value(self.tcp_info()).filter(|rate| *rate > 0).map(|rate| rate.saturating_mul(8))
    }

    /// Number of segments retransmitted since the connection was opened; `None` if the kernel does not report it.
    pub fn retransmits(&self) -> Option<u64> {
        RETRANS_TOTAL.raw_value(self.tcp_info())
    }

    /// How full the receive and the send buffer are, as shares of their limits (0 to 1, or slightly more); `None` if
    /// the kernel does not report it.
    pub fn buffer_use(&self) -> Option<[f64; 2]> {
        let memory = self.attribute(SKMEM)?;
        let share = |used: usize, limit: usize| {
            Some(f64::from(u32_at(memory, used * 4)?) / f64::from(u32_at(memory, limit * 4)?.max(1)))
        };
        Some([share(0, 1)?, share(5, 3)?])
    }

    /// Calls `each` with the name and value of every known key.
    pub fn for_each_value<E>(
        &self,
        mut each: impl FnMut(&'static str, SocketValue<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some((_, [local, peer])) = diag::parse_endpoints(&self.0) else { return Ok(()) };
        each("state", SocketValue::Text(STATES.get(usize::from(self.0[1])).unwrap_or(&STATES[0])))?;
        each("local_address_port", SocketValue::Id(local.to_string()))?;
        each("peer_address_port", SocketValue::Id(peer.to_string()))?;
        for (name, at) in [("recv_q", 56), ("send_q", 60), ("uid", 64), ("inode", 68)] {
            each(name, SocketValue::Whole(self.info_word(at).into()))?;
        }
        each("sk", SocketValue::Id(format!("{:x}", self.cookie())))?;
        for (name, value) in [("timer", self.timer_value()), ("cong", self.congestion_control().map(SocketValue::Text))]
        {
            value.map_or(Ok(()), |value| each(name, value))?;
        }
        self.for_each_connection_value(&mut each)?;
        let groups = [
            ("skmem", self.memory_values()),
            ("bbr", self.bbr_values()),
            ("dctcp", self.dctcp_values()),
            ("vegas", self.vegas_values()),
        ];
        groups
            .into_iter()
            .try_for_each(|(name, group)| group.map_or(Ok(()), |group| each(name, SocketValue::Group(group))))
    }

    /// Calls `each` with the values of the TCP connection.
    fn for_each_connection_value<E>(
        &self,
        each: &mut impl FnMut(&'static str, SocketValue<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let info = self.tcp_info();
        if let Some(&[options, scales, rate]) = info.get(5..8).and_then(|bits| bits.first_chunk()) {
            for (name, bit) in OPTIONS {
                each(name, SocketValue::Flag(options & bit != 0))?;
            }
            const WSCALE: u8 = 4;
            if options & WSCALE != 0 {
                let [own, peers] = split_half_bytes([scales & 15, scales >> 4]);
                each("snd_wscale", SocketValue::Whole(own.into()))?;
                each("rcv_wscale", SocketValue::Whole(peers.into()))?;
            }
            each("app_limited", SocketValue::Flag(rate & if cfg!(target_endian = "little") { 1 } else { 128 } != 0))?;
        }
        for key in &KEYS {
            key.read_value(info).map_or(Ok(()), |value| each(key.name, value))?;
        }
        self.send_bps().map_or(Ok(()), |rate| each("send", SocketValue::Whole(rate)))
    }

    /// Rate of a full window per round trip, in bits per second.
    fn send_bps(&self) -> Option<u64> {
        let (mss, cwnd, rtt_us) = (MSS.raw_value(self.tcp_info())?, self.cwnd()?, self.rtt_us()?);
        Some(u64::try_from(u128::from(mss) * u128::from(cwnd) * 8_000_000 / u128::from(rtt_us)).unwrap_or(u64::MAX))
    }

    /// The active timer: purpose, remaining time and number of expirations.
    fn timer_value(&self) -> Option<SocketValue<'_>> {
        let (timer, retransmits) = (self.0[2], self.0[3]);
        let name = TIMERS.get(usize::from(timer)).copied().unwrap_or("unknown");
        let group = vec![
            ("name", SocketValue::Text(name)),
            ("expires", SocketValue::Whole(self.info_word(52).into())),
            ("retrans", SocketValue::Whole(retransmits.into())),
        ];
        (timer != 0).then_some(SocketValue::Group(group))
    }

    fn congestion_control(&self) -> Option<&str> {
        std::str::from_utf8(self.attribute(CONG)?.split(|byte| *byte == 0).next()?).ok()
    }

    fn memory_values(&self) -> Option<Vec<(&'static str, SocketValue<'_>)>> {
        let memory = self.attribute(SKMEM)?;
        let known = MEMORY.into_iter().zip(memory.chunks_exact(4));
        Some(known.filter_map(|(name, word)| Some((name, SocketValue::Whole(u32_at(word, 0)?.into())))).collect())
    }

    fn bbr_values(&self) -> Option<Vec<(&'static str, SocketValue<'_>)>> {
        let bbr = self.attribute(BBR)?;
        let word = |at: usize| u32_at(bbr, at);
        let bytes_per_s = u64::from(word(4)?) << 32 | u64::from(word(0)?);
        let gain = |at: usize| Some(SocketValue::Decimal(f64::from(word(at)?) / 256.0));
        Some(vec![
            ("bw", SocketValue::Whole(bytes_per_s.saturating_mul(8))),
            ("mrtt", SocketValue::Decimal(f64::from(word(8)?) / 1e3)),
            ("pacing_gain", gain(12)?),
            ("cwnd_gain", gain(16)?),
        ])
    }

    fn dctcp_values(&self) -> Option<Vec<(&'static str, SocketValue<'_>)>> {
        let dctcp = self.attribute(DCTCP)?;
        let [enabled, ce_state] = *dctcp.first_chunk::<4>()?.as_chunks::<2>().0.first_chunk()?;
        let word = |at: usize| Some(SocketValue::Whole(u32_at(dctcp, at)?.into()));
        Some(vec![
            ("enabled", SocketValue::Flag(u16::from_ne_bytes(enabled) != 0)),
            ("ce_state", SocketValue::Whole(u16::from_ne_bytes(ce_state).into())),
            ("alpha", word(4)?),
            ("ab_ecn", word(8)?),
            ("ab_tot", word(12)?),
        ])
    }

    fn vegas_values(&self) -> Option<Vec<(&'static str, SocketValue<'_>)>> {
        let vegas = self.attribute(VEGAS)?;
        let ms = |at: usize| Some(SocketValue::Decimal(f64::from(u32_at(vegas, at)?) / 1e3));
        Some(vec![("enabled", SocketValue::Flag(u32_at(vegas, 0)? != 0)), ("rtt", ms(8)?), ("minrtt", ms(12)?)])
    }

    fn tcp_info(&self) -> &[u8] {
        self.attribute(INFO).unwrap_or_default()
    }

    fn attribute(&self, number: u16) -> Option<&[u8]> {
        diag::reply_attributes(&self.0).find(|(kind, _)| *kind == number).map(|(_, value)| value)
    }

    fn info_word(&self, at: usize) -> u32 {
        u32_at(&self.0, at).unwrap_or_default()
    }
}

/// Two half-byte fields in structure order: compilers start with either the low or the high bits.
fn split_half_bytes([low, high]: [u8; 2]) -> [u8; 2] {
    if cfg!(target_endian = "little") { [low, high] } else { [high, low] }
}

/// The state and addresses by which a filter judges a socket, from a message of the kernel's reply.
pub fn filter_subject(body: &[u8]) -> Option<Subject> {
    let (_, [local, peer]) = diag::parse_endpoints(body)?;
    Some(Subject { state: *body.get(1)?, local, peer })
}

/// The inode of a socket, from a message of the kernel's reply; 0 if no process holds the socket.
pub fn socket_inode(body: &[u8]) -> Option<u32> {
    u32_at(body, 68)
}
