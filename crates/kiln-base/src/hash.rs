//! The key hash: rapidhash v3 with a seed and secrets drawn at random for each process.
//!
//! Every table and the choice of a key's shard rest on this one function, so that it can be
//! swapped in one place. No file and no wire format may depend on it: its values differ from
//! process to process, which is what keeps a client from choosing keys that collide. With the
//! published secrets of rapidhash such keys are known (Nicoshev/rapidhash#25), hence random ones.

use std::sync::LazyLock;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

static SECRETS: LazyLock<RapidSecrets> = LazyLock::new(|| {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).expect("the system has a random number generator");
    RapidSecrets::seed(u64::from_ne_bytes(seed))
});

/// The 64-bit hash of `key`, the same for equal keys as long as this process lives.
///
/// Who uses which bits: a shard takes the top 10, a table's bucket the low ones, a bucket cell's
/// tag bits 40 to 47.
#[inline]
pub fn key_hash(key: &[u8]) -> u64 {
    rapidhash_v3_inline::<true, false, false>(key, &SECRETS)
}

#[cfg(test)]
mod tests {
    use super::key_hash;

    #[test]
    fn equal_keys_hash_alike_and_single_bits_matter() {
        let base = key_hash(b"user:1000");
        assert_eq!(base, key_hash(String::from("user:1000").as_bytes()));
        assert_ne!(base, key_hash(b"user:1001"));
        assert_ne!(key_hash(b""), key_hash(b"\0"));
    }
}
