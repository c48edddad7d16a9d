//! Bounds on the figures of workers, so that they can be added up: figures near 2^64 and kinds of errors without end are no measurement.

use std::io::{self, Write};

use onrush_stats::{Handshakes, Ledger, Totals};
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use super::message::Done;

/// The largest sum of all figures of all machines, so that no sum of several of them exceeds 64 bits, or 128 for squares ...
const MOST: u64 = 1 << 60;
const MOST_WIDE: u128 = 1 << 124;
/// ... and the times of all requests and connections: with a million of them at a time, this is two hours.
const MOST_OCCUPIED: u64 = 1 << 63;
/// How many kinds of errors, and of agreements of TLS, one machine may have, and how long an example may be.
const KINDS: usize = 1_000;
const EXAMPLE: usize = 4_096;

/// The sums of the largest figures that machines have sent.
#[derive(Default)]
pub struct Bound {
    figures: Largest,
    occupied: Largest,
}

impl Bound {
    /// Adds a row. Returns whether it can be added up with everything that came before.
    pub fn admits_row(&mut self, row: &mut Totals) -> bool {
        let occupancy = std::mem::take(&mut row.counters.occupancy);
        let figures = Largest::of(&*row);
        row.counters.occupancy = occupancy;
        self.admits(figures, Largest::of(&occupancy))
    }

    /// Adds what was not in the rows of a machine, likewise.
    pub fn admits_end(&mut self, done: &mut Done) -> bool {
        let mut occupied = Largest::default();
        let mut occupancies = Vec::with_capacity(done.shares.len());
        for share in &mut done.shares {
            let occupancy = std::mem::take(&mut share.counters.occupancy);
            occupied = occupied.or(Largest::of(&occupancy));
            occupancies.push(occupancy);
        }
        let times = (done.suspended_ns, done.beside_ns, done.late_ns);
        let figures = Largest::of(&(&done.ends, &done.shares, times));
        for (share, occupancy) in done.shares.iter_mut().zip(occupancies) {
            share.counters.occupancy = occupancy;
        }
        self.admits(figures, occupied)
    }

    fn admits(&mut self, figures: Largest, occupied: Largest) -> bool {
        let sums = self.figures.plus(figures).zip(self.occupied.plus(occupied)).filter(|(figures, occupied)| {
            figures.narrow <= MOST && figures.wide <= MOST_WIDE && occupied.narrow <= MOST_OCCUPIED
        });
        sums.map(|(figures, occupied)| (self.figures, self.occupied) = (figures, occupied)).is_some()
    }
}

/// The kinds of errors and of agreements of TLS that a machine has sent.
#[derive(Default)]
pub struct Kinds {
    ledger: Ledger,
    handshakes: Handshakes,
}

impl Kinds {
    /// Adds a row. Returns whether there are no more of them than there can be.
    pub fn admit(&mut self, row: &Totals) -> bool {
        let (errors, agreed) = (row.ledger.rows(), row.handshakes.kinds());
        // To add one that is too long would take too long.
        if errors.len() > KINDS || agreed > KINDS || errors.iter().any(|error| error.example.len() > EXAMPLE) {
            return false;
        }
        self.ledger += &row.ledger;
        self.handshakes += &row.handshakes;
        self.ledger.rows().len() <= KINDS && self.handshakes.kinds() <= KINDS
    }
}

/// The largest integer of up to 64 bits, and the largest of 128 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Largest {
    narrow: u64,
    wide: u128,
}

impl Largest {
    /// Returns the figures in anything that can be written as JSON.
    fn of(figures: &impl Serialize) -> Self {
        let mut integers = Integers::default();
        match figures.serialize(&mut Serializer::with_formatter(io::sink(), &mut integers)) {
            Ok(()) => integers.largest,
            Err(_) => Self { narrow: u64::MAX, wide: u128::MAX },
        }
    }

    fn or(self, other: Self) -> Self {
        Self { narrow: self.narrow.max(other.narrow), wide: self.wide.max(other.wide) }
    }

    fn plus(self, other: Self) -> Option<Self> {
        Some(Self { narrow: self.narrow.checked_add(other.narrow)?, wide: self.wide.checked_add(other.wide)? })
    }
}

/// Fields that are never added up: the least of a distribution, which is checked where it is read, and times.
const NO_SUMS: [&str; 3] = ["min", "from_ns", "until_ns"];

/// Takes note of the integers that would be written as JSON.
#[derive(Default)]
struct Integers {
    largest: Largest,
    /// The name of the field that is being written.
    field: String,
    is_name: bool,
}

impl Integers {
    fn note(&mut self, largest: Largest) -> io::Result<()> {
        if !NO_SUMS.contains(&&*self.field) {
            self.largest = self.largest.or(largest);
        }
        Ok(())
    }
}

/// Methods of a formatter that take note of an integer of up to 64 bits.
macro_rules! narrow {
    ($($method:ident($kind:ty);)*) => {
        $(fn $method<W: Write + ?Sized>(&mut self, _: &mut W, value: $kind) -> io::Result<()> {
            self.note(Largest { narrow: i128::from(value).unsigned_abs() as u64, wide: 0 })
        })*
    };
}

impl Formatter for &mut Integers {
    narrow! {
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
        self.note(Largest { narrow: 0, wide: value })
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
    use onrush_stats::{Cause, Negotiated, Phase};

    use super::*;

    #[test]
    fn the_largest_integer_is_found_wherever_it_is() {
        assert_eq!(Largest::of(&(7_u8, Some([-9_i32, 3]), 1.5, "12")), Largest { narrow: 9, wide: 0 });
        assert_eq!(Largest::of(&u128::from(u64::MAX)), Largest { narrow: 0, wide: u64::MAX.into() });
        assert!(Largest::of(&Totals::default()).narrow < 10, "nothing measured is no large figure");
        let mut row = Totals::default();
        row.latency.record(1 << 40);
        row.open_loop.get_or_insert_default().unsent = 1 << 50;
        assert_eq!(Largest::of(&row).narrow, 1 << 50);
    }

    #[test]
    fn sums_beyond_64_bits_are_not_admitted() {
        let row = |count| {
            let mut row = Totals { from_ns: 1 << 61, until_ns: u64::MAX, ..Totals::default() };
            row.counters.bytes_received = count;
            row.counters.occupancy.in_flight_ns = count * 2;
            row
        };
        let mut bound = Bound::default();
        assert!(bound.admits_row(&mut row(1 << 59)));
        assert!(!bound.admits_row(&mut row((1 << 59) + 1)), "together they are too much");
        assert!(bound.admits_row(&mut row(1 << 59)), "what was refused counts no more");
        let mut kept = row(5);
        assert!(Bound::default().admits_row(&mut kept));
        assert_eq!((kept.until_ns, kept.counters.occupancy.in_flight_ns), (u64::MAX, 10));
        let mut occupied = Totals::default();
        occupied.counters.occupancy.absent_ns = u64::MAX;
        assert!(!Bound::default().admits_row(&mut occupied));
        let done = |suspended_ns| Done { suspended_ns, ..Done::default() };
        assert!(!Bound::default().admits_end(&mut done(u64::MAX)) && Bound::default().admits_end(&mut done(7)));
    }

    #[test]
    fn kinds_of_errors_are_bounded_in_one_row_and_in_all() {
        let row = |codes: std::ops::Range<i32>| {
            let mut row = Totals::default();
            codes.for_each(|code| row.ledger.record(Phase::Send, Cause::Errno(code), 0, Vec::new));
            row
        };
        assert!(!Kinds::default().admit(&row(0..1_001)));
        let mut kinds = Kinds::default();
        assert!(kinds.admit(&row(0..600)) && kinds.admit(&row(300..1_000)) && !kinds.admit(&row(999..1_001)));
        let mut long = Totals::default();
        long.ledger.record(Phase::Send, Cause::Errno(1), 0, || vec![b'x'; EXAMPLE + 1]);
        assert!(!Kinds::default().admit(&long));
        let mut agreed = Totals::default();
        (0..1_001).for_each(|suite| agreed.handshakes.found(Negotiated { suite, ..Negotiated::default() }, 1));
        assert!(!Kinds::default().admit(&agreed));
    }
}
