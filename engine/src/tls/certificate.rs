//! The contents of a certificate of any version. Reads DER and verifies nothing.

/// The algorithm of an RSA key, as DER: rsaEncryption, without parameters.
const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";

/// True if a certificate names itself as its issuer.
pub fn is_self_signed(certificate: &[u8]) -> bool {
    parts(certificate).is_some_and(|parts| parts.issuer == parts.subject)
}

/// The public key of a certificate with its algorithm, as DER (SubjectPublicKeyInfo).
pub fn public_key(certificate: &[u8]) -> Option<&[u8]> {
    parts(certificate).map(|parts| parts.key)
}

/// Size of a certificate's RSA key in bits; `None` for other keys.
pub fn rsa_bits(certificate: &[u8]) -> Option<usize> {
    let (algorithm, key) = key_parts(public_key(certificate)?)?;
    let (_, key, _) = der_element(key).filter(|_| algorithm == RSA)?;
    let (_, modulus, _) = der_element(key)?;
    let first = modulus.iter().position(|&byte| byte != 0)?;
    Some((modulus.len() - first) * 8 - modulus[first].leading_zeros() as usize)
}

/// The algorithm of a public key, as its identifier and parameters, and the key itself.
pub fn key_parts(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, key, _) = der_element(key)?;
    let (_, algorithm, rest) = der_element(key)?;
    let (_, bits, _) = der_element(rest)?;
    // The number of unused bits in the last byte.
    Some((algorithm, bits.strip_prefix(&[0])?))
}

/// The parts of a certificate that are read here.
struct Parts<'a> {
    issuer: &'a [u8],
    subject: &'a [u8],
    key: &'a [u8],
}

fn parts(certificate: &[u8]) -> Option<Parts<'_>> {
    const VERSION: u8 = 0xa0;
    let (_, certificate, _) = der_element(certificate)?;
    let (_, signed, _) = der_element(certificate)?;
    // The version is left out if it is 1.
    let (tag, _, behind_version) = der_element(signed)?;
    let serial = if tag == VERSION { behind_version } else { signed };
    let (_, _, algorithm) = der_element(serial)?;
    let (_, _, issuer) = der_element(algorithm)?;
    let (_, issuer, validity) = der_element(issuer)?;
    let (_, _, subject) = der_element(validity)?;
    let (_, subject, key) = der_element(subject)?;
    let (_, _, behind_key) = der_element(key)?;
    Some(Parts { issuer, subject, key: &key[..key.len() - behind_key.len()] })
}

/// The tag and the content of the first DER element, and the bytes after it.
fn der_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], mut rest) = bytes.split_first_chunk()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let (digits, behind) = rest.split_at_checked(usize::from(first & 0x7f).min(4))?;
        length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
        rest = behind;
    }
    let (content, behind) = rest.split_at_checked(length)?;
    Some((tag, content, behind))
}
