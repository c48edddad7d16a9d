//! Writes and reads distributions in HdrHistogram's compressed format, which other tools use.

use std::io::{Cursor, Read};

use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use super::bins::HIGHEST;
use super::corrupt::Corrupt;
use super::distribution::Distribution;
use super::moments::Moments;

/// Decimal digits kept by the bins.
const DIGITS: u8 = 3;

impl Distribution<u64> {
    /// The bins in HdrHistogram's compressed format, version 2.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let written = V2DeflateSerializer::new().serialize(&self.to_hdr(), &mut bytes);
        written.expect("a histogram of 64-bit counts fits the format, and memory takes it");
        bytes
    }

    /// The distribution with the bins that [`Distribution::encode`] wrote, and these figures.
    ///
    /// # Errors
    ///
    /// If the bytes are no histogram, or contradict the figures.
    pub fn decode(bytes: &[u8], moments: Moments) -> Result<Self, Corrupt> {
        let mut distribution = Self::with_bins(bytes)?;
        distribution.set_moments(moments)?;
        Ok(distribution)
    }

    /// The distribution with the bins that [`Distribution::encode`] wrote, whose other figures are those of the bins.
    ///
    /// # Errors
    ///
    /// If the bytes are no histogram.
    pub fn decode_bins(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut distribution = Self::with_bins(bytes)?;
        let binned = distribution.binned();
        let moments = binned.bins().last().map(|(values, _)| {
            // The last bin of all goes beyond the highest value.
            let max = (*values.end()).min(HIGHEST);
            let mean = binned.mean().min(max as f64);
            Moments { count: distribution.count(), mean, stdev: binned.stdev(), min: binned.min(), max }
        });
        moments.map_or(Ok(()), |moments| distribution.set_moments(moments))?;
        Ok(distribution)
    }

    /// The bins, without the other figures.
    fn with_bins(bytes: &[u8]) -> Result<Self, Corrupt> {
        let whole = inflated(bytes).ok_or(Corrupt::Bytes)?;
        let read = Deserializer::new().deserialize::<u64, _>(&mut Cursor::new(whole)).map_err(|_| Corrupt::Bytes)?;
        let mut distribution = Self::new();
        for bin in read.iter_recorded() {
            distribution.bins.record(bin.value_iterated_to().min(HIGHEST), bin.count_at_value());
        }
        Ok(distribution)
    }

    /// The same as an HdrHistogram, for the formats of other tools.
    fn to_hdr(&self) -> Histogram<u64> {
        let mut hdr = Histogram::new_with_bounds(1, HIGHEST, DIGITS).expect("the bounds are constants and valid");
        self.bins.used().for_each(|(values, count)| hdr.saturating_record_n(*values.end(), count));
        hdr
    }
}

/// Decompresses the bins. The crate allocates the length that they state, so that length is checked here.
fn inflated(bytes: &[u8]) -> Option<Vec<u8>> {
    const COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
    const HEAD_BYTES: usize = 40;
    /// The largest histogram takes a third of this.
    const MOST: u64 = 1 << 20;
    let (_, compressed) = bytes.split_at_checked(8).filter(|(head, _)| head.starts_with(&COOKIE))?;
    let mut whole = Vec::new();
    ZlibDecoder::new(compressed).take(MOST).read_to_end(&mut whole).ok()?;
    let length = u32::from_be_bytes(*whole.get(4..)?.first_chunk()?) as usize;
    (whole.len() == HEAD_BYTES + length).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::super::distribution::tests::{of, scattered};
    use super::*;

    #[test]
    fn what_is_written_and_read_again_is_the_same() {
        for values in [scattered(5_000), vec![0], vec![7, 7], vec![HIGHEST - 1, HIGHEST], Vec::new()] {
            let before = of(&values);
            let empty = Moments { count: 0, mean: 0.0, stdev: 0.0, min: 0, max: 0 };
            let after = Distribution::decode(&before.encode(), before.moments().unwrap_or(empty)).unwrap();
            assert_eq!(after.values().collect::<Vec<_>>(), before.values().collect::<Vec<_>>());
            assert_eq!(after.moments(), before.moments());
            let mut sum = after.clone();
            sum += &after;
            let mut twice = before.clone();
            twice += &before;
            assert_eq!(sum.moments(), twice.moments(), "more figures can be added");
            let bins = Distribution::decode_bins(&before.encode()).unwrap();
            assert!(bins.binned().bins().eq(before.binned().bins()), "the same without the figures");
            assert_eq!(bins.count(), before.count());
        }
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        let good = of(&[10, 20, 30]);
        let moments = good.moments().unwrap();
        let decoded = |bytes: &[u8], moments| Distribution::decode(bytes, moments).map(|_| ());
        assert_eq!(decoded(b"", moments), Err(Corrupt::Bytes));
        assert_eq!(decoded(&good.encode()[..20], moments), Err(Corrupt::Bytes));
        // Eight bytes that state a false length: four gigabytes.
        let absurd = b"\x78\x01\x01\x08\x00\xf7\xff\x1c\x84\x93\x13\xff\xff\xff\xff\x12\x4b\x05\x43";
        assert_eq!(inflated(&[&good.encode()[..8], absurd].concat()), None);
        assert_eq!(decoded(&good.encode(), Moments { count: 4, ..moments }), Err(Corrupt::Count));
        for figures in [
            Moments { mean: 31.0, ..moments },
            Moments { mean: f64::NAN, ..moments },
            Moments { stdev: f64::NAN, ..moments },
            Moments { stdev: 1e300, ..moments },
            Moments { max: u64::MAX, ..moments },
        ] {
            assert_eq!(decoded(&good.encode(), figures), Err(Corrupt::Figures), "{figures:?}");
        }
    }
}
