//! The cluster slot of a key: CRC16 of its hash tag or of the whole key, modulo 16,384.
//!
//! The hash tag is what stands between the first `{` and the first `}` after it, if that is not
//! empty; keys that share one share a slot.
//!
//! Source: the Redis Cluster specification; CRC-16/XMODEM (polynomial 0x1021, start 0, not
//! reflected).

/// How many slots the keys of a cluster fall into.
pub const SLOT_COUNT: u16 = 16_384;

/// The slot of `key`, below [`SLOT_COUNT`].
pub fn key_slot(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) % SLOT_COUNT
}

/// The part of `key` that decides where it lives: its hash tag if it has one, else all of it.
#[inline]
pub fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else { return key };
    let tagged = &key[open + 1..];
    match memchr::memchr(b'}', tagged) {
        None | Some(0) => key,
        Some(close) => &tagged[..close],
    }
}

/// The CRC-16/XMODEM of `bytes`.
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ (0x1021 * (crc >> 15));
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::{crc16, hash_tag, key_slot};

    #[test]
    fn the_published_check_value() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }

    /// As Redis 8.2.3 answers CLUSTER KEYSLOT.
    #[test]
    fn slots_are_those_of_redis() {
        for (key, slot) in [
            ("", 0),
            ("foo", 12182),
            ("user:1000", 1649),
            ("{user1000}.following", 3443),
            ("foo{}{bar}", 8363),
            ("foo{{bar}}zap", 4015),
            ("foo{bar}{zap}", 5061),
            ("foo}{bar", 7624),
            ("\x7f é", 14233),
        ] {
            assert_eq!(key_slot(key.as_bytes()), slot, "{key}");
        }
    }

    #[test]
    fn hash_tags() {
        for (key, tag) in [
            ("{user1000}.following", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("foo}{bar", "foo}{bar"),
            ("plain", "plain"),
        ] {
            assert_eq!(hash_tag(key.as_bytes()), tag.as_bytes(), "{key}");
        }
    }
}
