//! The checksum of an effect in the AOF and on the replication link.
//!
//! An AOF has no checksum of its own, unlike RDB files and dumps. Without this one, nearly every flipped bit of a
//! number would be another number: another message, time or receipt. It stands in the upper bits of the first byte,
//! which a version does not need, so it takes no byte: the parity of the effect, and four bits of its CRC-32C. No flip
//! of one bit, or of another odd number of bits, leaves it as it was, and one in sixteen of all other changes does.

use super::Refused;

/// The bits of the first byte that are the version.
pub(super) const VERSION_MASK: u8 = 0b0000_0111;

// The largest number is left for a format that says its version elsewhere.
const _: () = assert!(super::VERSION < VERSION_MASK);

fn checksum(version: u8, rest: &[u8]) -> u8 {
    // The polynomial is a multiple of x + 1, so the parity of the remainder is that of the bytes.
    let crc = crc32c::crc32c_append(u32::from(version), rest);
    ((crc.count_ones() as u8 & 1) << 4 | (crc >> 28) as u8) << VERSION_MASK.count_ones()
}

/// Writes the checksum of an encoded effect into its first byte.
pub fn seal(effect: &mut [u8]) {
    if let Some((first, rest)) = effect.split_first_mut() {
        let version = *first & VERSION_MASK;
        *first = version | checksum(version, rest);
    }
}

/// Checks the checksum of an encoded effect, and returns the effect. [`Stamped::decode`](crate::Stamped::decode) does
/// not: what comes from an RDB file was checked with it.
pub fn unsealed(effect: &[u8]) -> Result<&[u8], Refused> {
    let (first, rest) = effect.split_first().ok_or(Refused::Malformed)?;
    let version = first & VERSION_MASK;
    (first & !VERSION_MASK == checksum(version, rest)).then_some(effect).ok_or(Refused::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_breaks_the_seal() {
        for len in 1..300 {
            let mut sealed: Vec<u8> = (0..len).map(|byte| (byte * 7 + 1) as u8).collect();
            seal(&mut sealed);
            assert_eq!(unsealed(&sealed).map(|effect| effect[0] & VERSION_MASK), Ok(1));
            for bit in 0..8 * sealed.len() {
                let mut damaged = sealed.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(unsealed(&damaged), Err(Refused::Malformed), "bit {bit} of {len} bytes");
            }
        }
    }

    #[test]
    fn most_other_damage_breaks_the_seal() {
        let mut sealed: Vec<u8> = (1..201).collect();
        seal(&mut sealed);
        let swapped = (1..199).filter(|at| {
            let mut damaged = sealed.clone();
            damaged.swap(*at, at + 1);
            unsealed(&damaged).is_ok()
        });
        let cut = (0..199).filter(|end| unsealed(&sealed[..*end]).is_ok());
        assert!(swapped.count() + cut.count() <= 397 / 8);
    }
}
