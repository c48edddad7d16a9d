//! Cache of encoded fields: a script sends mostly equal ones with every request.

/// Number of places, a power of two.
const PLACES: usize = 256;

/// Longer fields are encoded every time.
const LENGTH_MAX: usize = 512;

/// Fields and their encodings, each in the place determined by its bytes.
#[derive(Debug, Default)]
pub(super) struct FieldCache {
    /// Empty until the first field.
    places: Vec<FieldSlot>,
}

#[derive(Clone, Debug, Default)]
struct FieldSlot {
    /// The name, the value and the encoding.
    bytes: Box<[u8]>,
    name_length: u32,
    /// Length of name and value.
    length: u32,
}

impl FieldCache {
    /// Appends a field to a block; `encode` encodes it if it is new.
    pub(super) fn append_field(
        &mut self,
        name: &[u8],
        value: &[u8],
        block: &mut Vec<u8>,
        encode: impl Fn(&[u8], &[u8], &mut Vec<u8>),
    ) {
        let length = name.len() + value.len();
        if length > LENGTH_MAX {
            return encode(name, value, block);
        }
        if self.places.is_empty() {
            self.places = vec![FieldSlot::default(); PLACES];
        }
        let place = &mut self.places[hash(name).wrapping_add(hash(value)) as usize % PLACES];
        let (field, encoded) = place.bytes.split_at(place.length as usize);
        if place.name_length as usize == name.len()
            && field.len() == length
            && field.starts_with(name)
            && field.ends_with(value)
        {
            return block.extend_from_slice(encoded);
        }
        let start = block.len();
        encode(name, value, block);
        *place = FieldSlot {
            bytes: [name, value, &block[start..]].concat().into(),
            name_length: name.len() as u32,
            length: length as u32,
        };
    }
}

/// A hash of all bytes.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = bytes.as_chunks::<8>();
    let fold = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| fold(hash, u64::from_le_bytes(*word)));
    let rest = rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let hash = fold(hash, rest);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn short_fields_are_encoded_once() {
        let encoded = Cell::new(0);
        let mut written = FieldCache::default();
        let mut block = Vec::new();
        let mut put = |name: &str, value: &str| {
            written.append_field(name.as_bytes(), value.as_bytes(), &mut block, |name, value, block| {
                encoded.set(encoded.get() + 1);
                block.extend([&name[..1], b"=", &value[..1], b";"].concat());
            });
            encoded.get()
        };
        assert_eq!([put("a", "b"), put("a", "b"), put("a", "bc"), put("ab", "c"), put("a", "bc")], [1, 1, 2, 3, 3]);
        let long = "x".repeat(LENGTH_MAX);
        assert_eq!([put("a", &long), put("a", &long)], [4, 5]);
        assert_eq!(block, b"a=b;a=b;a=b;a=c;a=b;a=x;a=x;");
    }
}
