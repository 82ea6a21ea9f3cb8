//! The payload of RESTORE: no value makes the reader panic, and one that is taken can be dumped and
//! restored again.

#![no_main]

use kiln_keyspace::{Entry, Settings};
use kiln_persist::{Loaded, dump, restore, seal};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|value: &[u8]| {
    let settings = Settings::default();
    let _ = restore(value, &settings);
    if let Ok(loaded) = restore(&seal(value.to_vec()), &settings) {
        let entry = match loaded {
            Loaded::String(text) => Entry::string(b"k", &text, None),
            Loaded::Object(object) => Entry::object(b"k", object, None),
        };
        assert!(restore(&dump(&entry).expect("no engine"), &settings).is_ok());
    }
});
