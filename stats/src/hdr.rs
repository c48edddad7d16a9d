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

/// Encodes bins, each a value and its count, in HdrHistogram's compressed format, version 2.
pub fn encode(bins: impl IntoIterator<Item = (u64, u64)>) -> Vec<u8> {
    let mut hdr = Histogram::new_with_bounds(1, HIGHEST, DIGITS).expect("the bounds are constants and valid");
    bins.into_iter().for_each(|(value, count)| hdr.saturating_record_n(value, count));
    let mut bytes = Vec::new();
    let written = V2DeflateSerializer::new().serialize(&hdr, &mut bytes);
    written.expect("a histogram of 64-bit counts fits the format, and memory takes it");
    bytes
}

/// Decodes what [`encode`] has written: bins, each a value and its count.
///
/// # Errors
///
/// If the bytes are not a histogram.
pub fn decode(bytes: &[u8]) -> Result<Vec<(u64, u64)>, Corrupt> {
    let whole = decompress_bins(bytes).ok_or(Corrupt::Bytes)?;
    let read = Deserializer::new().deserialize::<u64, _>(&mut Cursor::new(whole)).map_err(|_| Corrupt::Bytes)?;
    Ok(read.iter_recorded().map(|bin| (bin.value_iterated_to(), bin.count_at_value())).collect())
}

impl Distribution<u64> {
    /// The distribution with these bins, each a value and its count; its other statistics follow from the bins.
    ///
    /// # Errors
    ///
    /// If the counts overflow.
    pub fn from_bins(bins: impl IntoIterator<Item = (u64, u64)>) -> Result<Self, Corrupt> {
        let mut distribution = Self::new();
        bins.into_iter().for_each(|(value, count)| distribution.bins.record(value.min(HIGHEST), count));
        let binned = distribution.binned();
        let moments = binned.bins().last().map(|(values, _)| {
            // The very last bin extends beyond the highest value.
            let max = (*values.end()).min(HIGHEST);
            let mean = binned.mean().min(max as f64);
            let (count, stdev) = (distribution.count(), binned.stdev());
            Moments { count, mean, stdev, min: binned.min(), max, ..Moments::default() }
        });
        moments.map_or(Ok(()), |moments| distribution.set_moments(moments))?;
        Ok(distribution)
    }
}

/// Decompresses the bins. The crate allocates whatever length the bytes state, so the length is checked here.
fn decompress_bins(bytes: &[u8]) -> Option<Vec<u8>> {
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
    use super::super::distribution::tests::{distribution, scattered};
    use super::*;

    /// The smallest value of each bin, and its count.
    fn bins(measured: &Distribution<u64>) -> impl Iterator<Item = (u64, u64)> {
        measured.bins.used_bins().map(|(values, count)| (*values.start(), count))
    }

    #[test]
    fn encoded_histograms_round_trip() {
        for values in [scattered(5_000), vec![0], vec![7, 7], vec![HIGHEST - 1, HIGHEST], Vec::new()] {
            let before = distribution(&values);
            let mut after = Distribution::from_bins(decode(&encode(bins(&before))).unwrap()).unwrap();
            assert!(bins(&after).eq(bins(&before)) && after.count() == before.count());
            after.set_moments(before.moments().unwrap_or_default()).unwrap();
            assert_eq!(after.values().collect::<Vec<_>>(), before.values().collect::<Vec<_>>());
            assert_eq!(after.moments(), before.moments());
            let mut sum = after.clone();
            sum += &after;
            let mut twice = before.clone();
            twice += &before;
            assert_eq!(sum.moments(), twice.moments(), "more figures can be added");
            assert!(bins(&Distribution::from_bins(bins(&before)).unwrap()).eq(bins(&before)));
        }
    }

    #[test]
    fn invalid_distributions_are_refused() {
        let good = distribution(&[10, 20, 30]);
        let moments = good.moments().unwrap();
        let decoded = |bytes: &[u8], moments| Distribution::from_bins(decode(bytes)?)?.set_moments(moments);
        assert_eq!(decoded(b"", moments), Err(Corrupt::Bytes));
        assert_eq!(decoded(&encode(bins(&good))[..20], moments), Err(Corrupt::Bytes));
        // Eight bytes with a false length: four gigabytes.
        let absurd = b"\x78\x01\x01\x08\x00\xf7\xff\x1c\x84\x93\x13\xff\xff\xff\xff\x12\x4b\x05\x43";
        assert_eq!(decompress_bins(&[&encode(bins(&good))[..8], absurd].concat()), None);
        assert_eq!(decoded(&encode(bins(&good)), Moments { count: 4, ..moments }), Err(Corrupt::Count));
        for figures in [
            Moments { mean: 31.0, ..moments },
            Moments { mean: f64::NAN, ..moments },
            Moments { stdev: f64::NAN, ..moments },
            Moments { stdev: 1e300, ..moments },
            Moments { max: u64::MAX, ..moments },
            Moments { sum: Some(61), ..moments },
            Moments { sum: Some(u128::MAX), ..moments },
            Moments { squares: Some(1_401), ..moments },
            Moments { squares: Some(0), ..moments },
            Moments { squares: Some(u128::MAX), ..moments },
        ] {
            assert_eq!(decoded(&encode(bins(&good)), figures), Err(Corrupt::Figures), "{figures:?}");
        }
    }
}
