//! The request parser: no input makes it panic, and however the network cuts an input, the
//! commands and the error are the same.

#![no_main]

#[path = "../../crates/kiln-resp/tests/it/split.rs"]
mod split;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // The first bytes also choose where the input is cut.
    let seed = input.iter().take(8).fold(1, |seed: u64, &byte| seed << 7 ^ u64::from(byte));
    split::check(input, seed);
});
