//! Numbers from outside: no text makes a reader panic, and a printed number is read back as itself.

#![no_main]

use kiln_base::number::{DOUBLE_BYTES_MAX, LongDouble, format_f64, parse_f64, parse_i64};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Some(integer) = parse_i64(text) {
        assert_eq!(integer.to_string().as_bytes(), text);
    }
    if let Some(number) = parse_f64(text) {
        assert!(!number.is_nan());
        let mut buf = [0; DOUBLE_BYTES_MAX];
        let again = parse_f64(format_f64(number, &mut buf)).expect("printed numbers can be read");
        assert_eq!(again.to_bits(), number.to_bits());
    }
    if let Some(number) = LongDouble::parse(text)
        && let Some(twice) = number.checked_add(number)
    {
        let mut printed = Vec::new();
        twice.print(&mut printed);
        assert!(LongDouble::parse(&printed).is_some());
    }
});
