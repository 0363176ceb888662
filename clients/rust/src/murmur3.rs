//! MurmurHash3, x86, 32 bits: the hash by which a key chooses its partition, in every language.

const C1: u32 = 0xcc9e_2d51;
const C2: u32 = 0x1b87_3593;

/// The hash of a key.
pub(crate) fn murmur3(key: &[u8], seed: u32) -> u32 {
    let mut hash = seed;
    for part in key.chunks(4) {
        hash ^= mix(part.iter().rev().fold(0, |word, &byte| (word << 8) | u32::from(byte)));
        if part.len() == 4 {
            hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
        }
    }
    // The length counts modulo 2^32.
    #[allow(clippy::cast_possible_truncation, reason = "as the algorithm is defined")]
    let length = key.len() as u32;
    hash ^= length;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

fn mix(word: u32) -> u32 {
    word.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2)
}

#[cfg(test)]
mod tests {
    use super::murmur3;

    #[test]
    fn hashes_are_those_of_the_reference() {
        assert_eq!(murmur3(b"", 0), 0);
        assert_eq!(murmur3(b"", 1), 0x514e_28b7);
        assert_eq!(murmur3(b"", 0xffff_ffff), 0x81f1_6f39);
        assert_eq!(murmur3(b"test", 0), 0xba6b_d213);
        assert_eq!(murmur3(b"Hello, world!", 0), 0xc036_3e43);
        assert_eq!(murmur3(b"The quick brown fox jumps over the lazy dog", 0), 0x2e4f_f723);
        assert_eq!(murmur3(&[0xff, 0xff, 0xff, 0xff], 0), 0x7629_3b50);
        assert_eq!(murmur3(&[0x21, 0x43, 0x65], 0), 0x7e4a_8634);
    }
}
