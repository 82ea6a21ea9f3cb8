//! The filter expressions of VSIM: neither an expression nor attributes make anything panic, and
//! what passes without attributes passes with any.

#![no_main]

use kiln_search::filter::Filter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // Expression and attributes, divided by the first NUL: an expression cannot have one.
    let end = input.iter().position(|&byte| byte == 0).unwrap_or(input.len());
    let (expression, attributes) = input.split_at(end);
    if let Ok(filter) = Filter::new(expression) {
        let passes = filter.matches(attributes.get(1..).unwrap_or_default());
        assert!(passes || !filter.matches(b""));
    }
});
