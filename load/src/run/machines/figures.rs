//! Bounds on the figures of workers, so that sums cannot overflow: figures near 2^64 or endless kinds of errors are not
//! measurements.

use std::io::{self, Write};

use onrush_stats::{Handshakes, Ledger, Totals};
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Maximum sum of a figure over all machines, so that no sum of several figures exceeds 64 bits, or 128 bits for
/// squares ...
const MOST: u64 = 1 << 60;
const MOST_WIDE: u128 = 1 << 124;
/// ... and maximum sum of times over requests and connections: enough for 20,000 at a time over five days.
const MOST_NS: u64 = 1 << 63;
/// Maximum number of kinds of errors, and of TLS agreements, per machine; and maximum length of an example.
const KINDS: usize = 1_000;
const EXAMPLE: usize = 4_096;

/// Sums of the largest figures that a machine has sent so far.
#[derive(Default)]
pub struct Bound(Largest);

impl Bound {
    /// Adds figures from one of `machines` machines. Returns true if the bounds hold even if every machine sends
    /// figures as large as all that this one has sent.
    pub fn admit_figures(&mut self, figures: &impl Serialize, machines: usize) -> bool {
        let machines = machines.max(1);
        let is_possible = |sum: &Largest| {
            let Largest { count, ns, wide } = *sum;
            count <= MOST / machines as u64 && ns <= MOST_NS / machines as u64 && wide <= MOST_WIDE / machines as u128
        };
        let sum = Largest::find_largest(figures).and_then(|largest| self.0.checked_add(largest)).filter(is_possible);
        sum.map(|sum| self.0 = sum).is_some()
    }
}

/// The kinds of errors and of TLS agreements that a machine has sent.
#[derive(Default)]
pub struct ErrorKinds {
    ledger: Ledger,
    handshakes: Handshakes,
}

impl ErrorKinds {
    /// Records the kinds in a row. Returns true if the numbers of kinds and the lengths of examples stay within the
    /// limits.
    pub fn admit_row(&mut self, row: &Totals) -> bool {
        let (errors, agreed) = (row.ledger.rows(), row.handshakes.distinct_count());
        // Adding a row that is too large would take too long.
        if errors.len() > KINDS || agreed > KINDS || errors.iter().any(|error| error.example.len() > EXAMPLE) {
            return false;
        }
        self.ledger += &row.ledger;
        self.handshakes += &row.handshakes;
        self.ledger.rows().len() <= KINDS && self.handshakes.distinct_count() <= KINDS
    }
}

/// The largest count and largest time of up to 64 bits, and the largest 128-bit integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Largest {
    count: u64,
    ns: u64,
    wide: u128,
}

impl Largest {
    /// The largest figures of a serializable value; `None` if it cannot be serialized.
    fn find_largest(figures: &impl Serialize) -> Option<Self> {
        let mut integers = Integers::default();
        figures.serialize(&mut Serializer::with_formatter(io::sink(), &mut integers)).ok()?;
        Some(integers.largest)
    }

    fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self {
            count: self.count.checked_add(other.count)?,
            ns: self.ns.checked_add(other.ns)?,
            wide: self.wide.checked_add(other.wide)?,
        })
    }
}

/// Fields that are never summed: the minimum of a distribution, which is checked on reading, and times.
const NO_SUMS: [&str; 3] = ["min", "from_ns", "until_ns"];

/// Serializer that records integers.
#[derive(Default)]
struct Integers {
    largest: Largest,
    /// Name of the field being written.
    field: String,
    is_name: bool,
}

impl Integers {
    fn record_integer(&mut self, value: u64) -> io::Result<()> {
        let largest = match &*self.field {
            field if NO_SUMS.contains(&field) => return Ok(()),
            field if field.ends_with("_ns") => &mut self.largest.ns,
            _ => &mut self.largest.count,
        };
        *largest = value.max(*largest);
        Ok(())
    }
}

/// Formatter methods that record an integer of up to 64 bits.
macro_rules! note {
    ($($method:ident($kind:ty);)*) => {
        $(fn $method<W: Write + ?Sized>(&mut self, _: &mut W, value: $kind) -> io::Result<()> {
            self.record_integer(i128::from(value).unsigned_abs() as u64)
        })*
    };
}

impl Formatter for &mut Integers {
    note! {
        write_i8(i8);
        write_i16(i16);
        write_i32(i32);
        write_i64(i64);
        write_u8(u8);
        write_u16(u16);
        write_u32(u32);
        write_u64(u64);
    }

    fn write_u128<W: Write + ?Sized>(&mut self, _: &mut W, value: u128) -> io::Result<()> {
        self.largest.wide = value.max(self.largest.wide);
        Ok(())
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, _: &mut W, _: bool) -> io::Result<()> {
        self.field.clear();
        self.is_name = true;
        Ok(())
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, _: &mut W, fragment: &str) -> io::Result<()> {
        if self.is_name {
            self.field += fragment;
        }
        Ok(())
    }

    fn end_object_key<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_name = false;
        Ok(())
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.field.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use onrush_proto::Code;
    use onrush_proto::http2::{GoawayReason, Http2Counts};
    use onrush_stats::{Cause, Negotiated, Phase};

    use super::*;

    #[test]
    fn largest_integer_is_found_at_any_depth() {
        let largest = |count, ns, wide| Some(Largest { count, ns, wide });
        assert_eq!(Largest::find_largest(&(7_u8, Some([-9_i32, 3]), 1.5, "12")), largest(9, 0, 0));
        assert_eq!(Largest::find_largest(&u128::from(u64::MAX)), largest(0, 0, u64::MAX.into()));
        assert!(Largest::find_largest(&Totals::default()).unwrap().count < 10, "nothing measured is no large figure");
        let mut row = Totals { from_ns: 1 << 61, until_ns: u64::MAX, ..Totals::default() };
        row.latency.record(1 << 40);
        let open_loop = row.open_loop.get_or_insert_default();
        (open_loop.unsent, open_loop.calm_ns) = (1 << 50, 1 << 62);
        let Some(Largest { count, ns, .. }) = Largest::find_largest(&row) else { panic!("it can be written") };
        assert_eq!((count, ns), (1 << 50, 1 << 62));
    }

    #[test]
    fn sums_beyond_64_bits_are_not_admitted() {
        let row = |count| {
            let mut row = Totals::default();
            row.counters.bytes_received = count;
            row
        };
        let mut bound = Bound::default();
        assert!(bound.admit_figures(&row(1 << 59), 1));
        assert!(!bound.admit_figures(&row((1 << 59) + 1), 1), "together they are too much");
        assert!(bound.admit_figures(&row(1 << 59), 1), "what was refused counts no more");
        assert!(!Bound::default().admit_figures(&row(1 << 59), 4), "four machines could send as much");
        let occupied = |in_flight_ns| {
            let mut row = Totals::default();
            row.counters.occupancy.in_flight_ns = in_flight_ns;
            row
        };
        // Corresponds to 20,000 connections over four days.
        assert!(Bound::default().admit_figures(&occupied(4 * 86_400_000_000_000 * 20_000), 1));
        assert!(!Bound::default().admit_figures(&occupied(u64::MAX), 1));
    }

    #[test]
    fn texts_of_servers_are_admitted() {
        let mut seen = Http2Counts::default();
        seen.reasons.push(GoawayReason { code: Code::ENHANCE_YOUR_CALM, text: b"max_age".to_vec(), times: 3 });
        assert_eq!(Largest::find_largest(&seen), Some(Largest { count: 120, ns: 0, wide: 0 }));
    }

    #[test]
    fn error_kinds_are_bounded_per_row_and_total() {
        let row = |codes: std::ops::Range<i32>| {
            let mut row = Totals::default();
            codes.for_each(|code| row.ledger.record(Phase::Send, Cause::Errno(code), 0, Vec::new));
            row
        };
        assert!(!ErrorKinds::default().admit_row(&row(0..1_001)));
        let mut kinds = ErrorKinds::default();
        assert!(
            kinds.admit_row(&row(0..600)) && kinds.admit_row(&row(300..1_000)) && !kinds.admit_row(&row(999..1_001))
        );
        let mut long = Totals::default();
        long.ledger.record(Phase::Send, Cause::Errno(1), 0, || vec![b'x'; EXAMPLE + 1]);
        assert!(!ErrorKinds::default().admit_row(&long));
        let mut agreed = Totals::default();
        (0..1_001)
            .for_each(|suite| agreed.handshakes.record_existing(Negotiated { suite, ..Negotiated::default() }, 1));
        assert!(!ErrorKinds::default().admit_row(&agreed));
    }
}
