//! Rules about the text of files: headers, locks, wire texts, marks, sizes, widths, names.

use super::{Problem, SourceFile, Tree, ratchet};

/// The file that every lock and atomic comes from.
const SYNC: &str = "crates/kiln-base/src/sync.rs";
const SYNC_NAMES: [&str; 7] = [
    "std::sync::atomic",
    "core::sync::atomic",
    "std::sync::Mutex",
    "std::sync::RwLock",
    "std::sync::Condvar",
    "parking_lot",
    "loom::sync",
];
/// Files that named locks or atomics themselves when the rule was new.
const SYNC_OFFENDERS: &[&str] = &["crates/kiln-server/src/log.rs"];

/// The home of wire texts.
const ERRORS: &str = "crates/kiln-command/src/error.rs";
/// What an error reply starts with.
const ERROR_CODES: [&str; 16] = [
    "ERR",
    "WRONGTYPE",
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "NOPROTO",
    "EXECABORT",
    "OOM",
    "BUSYKEY",
    "NOSCRIPT",
    "READONLY",
    "MISCONF",
    "LOADING",
    "UNBLOCKED",
    "CROSSSLOT",
    "MOVED",
];
/// Crates that speak of error texts because they test them.
const TEST_CRATES: [&str; 3] = ["crates/kiln-testkit/", "crates/kiln-bench/", "crates/xtask/"];
/// Files that wrote error texts themselves when the rule was new.
const WIRE_TEXT_OFFENDERS: &[&str] = &[];

const LARGEST_FILE_BYTES: u64 = 256 * 1024;
/// As in `rustfmt.toml`, which does not break long strings and comments.
const WIDEST_LINE: usize = 100;

/// A Rust file opens with what it is. Only an attribute of the file may stand before it.
pub(super) fn headers(tree: &Tree) -> Vec<Problem> {
    let opening = |file: &SourceFile| {
        let mut lines = file.text.lines();
        lines.find(|line| !line.is_empty() && !line.starts_with("#![")).map(str::to_owned)
    };
    tree.rust_files()
        .filter(|(file, _)| !opening(file).is_some_and(|line| line.starts_with("//! ")))
        .map(|(file, _)| Problem::new(&file.path, 1, "the file opens with //!", FILES))
        .collect()
}

/// Locks and atomics are named only in `kiln_base::sync`, so that loom can take their place.
pub(super) fn sync_facade(tree: &Tree) -> Vec<Problem> {
    ratchet(all_sync_names(tree), SYNC_OFFENDERS, UNSAFE)
}

fn all_sync_names(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, rust) in tree.rust_files().filter(|(file, _)| file.path != SYNC) {
        for (line, code) in rust.code_lines() {
            let grouped = code.contains("std::sync::{")
                && ["Mutex", "RwLock", "Condvar", "atomic"].iter().any(|n| code.contains(n));
            if grouped || SYNC_NAMES.iter().any(|name| code.contains(name)) {
                let what = "locks and atomics come from kiln_base::sync";
                problems.push(Problem::new(&file.path, line, what, UNSAFE));
            }
        }
    }
    problems
}

/// Error texts are written in one file.
pub(super) fn wire_texts(tree: &Tree) -> Vec<Problem> {
    ratchet(all_wire_texts(tree), WIRE_TEXT_OFFENDERS, ERRORS_SECTION)
}

fn all_wire_texts(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, rust) in tree.rust_files() {
        let tests = file.is_test() || TEST_CRATES.iter().any(|path| file.path.starts_with(path));
        if tests || file.path == ERRORS {
            continue;
        }
        for literal in rust.strings.iter().filter(|literal| literal.line < rust.tests_from) {
            let said = literal.text.strip_prefix('-').unwrap_or(&literal.text);
            let is_error =
                said.split_once(' ').is_some_and(|(code, _)| ERROR_CODES.contains(&code));
            if is_error && !is_typed(file, literal.line) {
                let what = "error texts are CommandError's: name a variant, or CommandError::text";
                problems.push(Problem::new(&file.path, literal.line, what, ERRORS_SECTION));
            }
        }
    }
    problems
}

/// Whether the literal on `line` (from 1) is an argument of a constructor of `CommandError`, or a
/// named constant for one: the call may have begun a few lines up.
fn is_typed(file: &SourceFile, line: usize) -> bool {
    /// Lines that rustfmt may put between the call and its text.
    const REACH: usize = 4;
    let lines = file.text.lines().skip(line.saturating_sub(REACH + 1)).take(2 * REACH);
    let typed = ["CommandError::text(", "CommandError::owned(", ": &str =", "&'static str"];
    lines.into_iter().any(|line| typed.iter().any(|call| line.contains(call)))
}

/// Nothing merges that says of itself that it must be mended first.
pub(super) fn fixme(tree: &Tree) -> Vec<Problem> {
    let mark = concat!("FIX", "ME");
    lines(tree, |_, line| line.contains(mark).then(|| format!("{mark} cannot merge")), COMMENTS)
}

/// No large blobs: a clone stays small for good.
pub(super) fn blobs(tree: &Tree) -> Vec<Problem> {
    let large = tree.files.iter().filter(|file| file.size > LARGEST_FILE_BYTES);
    large
        .map(|file| {
            let what = format!("{} bytes; at most {LARGEST_FILE_BYTES}", file.size);
            Problem::new(&file.path, 0, what, TOOLING)
        })
        .collect()
}

/// Lines of code fit; a string or an address is not broken for that.
pub(super) fn width(tree: &Tree) -> Vec<Problem> {
    let is_code = |path: &str| {
        [".rs", ".py", ".sh"].iter().any(|end| path.ends_with(end)) || path.starts_with(".ci/")
    };
    let judge = |file: &SourceFile, line: &str| {
        let excused = line.contains("://") || line.contains('"');
        let width = line.chars().count();
        (is_code(&file.path) && !excused && width > WIDEST_LINE)
            .then(|| format!("{width} characters; at most {WIDEST_LINE}"))
    };
    lines(tree, judge, TOOLING)
}

/// No registry's host and no path of somebody's machine: a checkout builds anywhere, with the
/// registries that cargo and pip are configured for.
pub(super) fn outside_names(tree: &Tree) -> Vec<Problem> {
    let names = [
        concat!("index.crates", ".io"),
        concat!("static.crates", ".io"),
        concat!("pypi", ".org"),
        concat!("pythonhosted", ".org"),
        concat!("registry.npmjs", ".org"),
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/Us", "ers/"),
        concat!("/wo", "rk/"),
    ];
    let judge = |_: &SourceFile, line: &str| {
        let found = names.iter().find(|name| stands_alone(line, name));
        found.map(|name| format!("{name} is outside the repository"))
    };
    lines(tree, judge, TOOLING)
}

/// Whether `name` is in `line`, and not as a folder inside a longer path.
fn stands_alone(line: &str, name: &str) -> bool {
    let inner =
        |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || "._-~".contains(c));
    line.match_indices(name).any(|(at, _)| !(name.starts_with('/') && inner(&line[..at])))
}

/// At most one integration binary in a crate: each costs a link.
pub(super) fn integration_tests(tree: &Tree) -> Vec<Problem> {
    tree.rust_files()
        .filter(|(file, _)| {
            let inside = file.path.strip_prefix("crates/").and_then(|path| path.split_once('/'));
            inside
                .and_then(|(_, path)| path.strip_prefix("tests/"))
                .is_some_and(|path| !path.starts_with("it/"))
        })
        .map(|(file, _)| Problem::new(&file.path, 0, "integration tests lie in tests/it/", TESTS))
        .collect()
}

const FILES: &str = "Files and functions";
const UNSAFE: &str = "Unsafe and concurrency";
const ERRORS_SECTION: &str = "Errors";
const COMMENTS: &str = "Comments and public docs";
const TESTS: &str = "Tests";
const TOOLING: &str = "Tooling and CI";

/// The problems that `judge` sees in single lines.
fn lines(
    tree: &Tree,
    judge: impl Fn(&SourceFile, &str) -> Option<String>,
    section: &'static str,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in &tree.files {
        for (number, line) in file.lines() {
            if let Some(what) = judge(file, line) {
                problems.push(Problem::new(&file.path, number, what, section));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, tree};
    use super::{
        ERRORS, LARGEST_FILE_BYTES, SYNC, all_sync_names, all_wire_texts, blobs, fixme, headers,
        integration_tests, outside_names, width,
    };

    #[test]
    fn a_file_opens_with_its_header() {
        let attribute = "#![expect(unsafe_code, reason = \"x\")]\n\n//! A.\n";
        let good = [("a.rs", "//! A.\n"), ("b.rs", attribute), ("c.py", "")];
        check(headers, &tree(&good), &[]);
        let files = [("b.rs", "// B.\n"), ("c.rs", "")];
        check(headers, &tree(&files), &["b.rs:1", "c.rs:1"]);
    }

    #[test]
    fn locks_come_from_the_facade() {
        let code = "use std::sync::Arc;\nuse std::sync::{Arc, Mutex};\nuse parking_lot::RwLock;\n\
                    // std::sync::atomic\nlet a = core::sync::atomic::AtomicU8::new(1);\n\
                    #[cfg(test)]\nmod tests {\n    use std::sync::atomic::AtomicU8;\n}\n";
        let files = [("a.rs", code), (SYNC, code)];
        check(all_sync_names, &tree(&files), &["a.rs:2", "a.rs:3", "a.rs:5"]);
    }

    #[test]
    fn error_texts_have_one_home() {
        let code = "f(\"ERR no\");\nf(b\"-WRONGTYPE x\");\n// \"ERR no\"\nf(\"ERROR no\");\n\
                    #[cfg(test)]\nmod tests {\n    f(\"ERR no\");\n}\n";
        let test = "crates/kiln-redis/src/list/tests.rs";
        let files = [("a.rs", code), (ERRORS, code), (test, code)];
        check(all_wire_texts, &tree(&files), &["a.rs:1", "a.rs:2"]);
    }

    #[test]
    fn marks_and_blobs_do_not_merge() {
        let mark = concat!("a\n# FIX", "ME\n");
        check(fixme, &tree(&[("a.toml", mark), ("b.rs", "// TODO(#2)\n")]), &["a.toml:2"]);
        let large = "x".repeat(LARGEST_FILE_BYTES as usize + 1);
        check(blobs, &tree(&[("a.svg", &large), ("b.svg", &large[1..])]), &["a.svg:0"]);
    }

    #[test]
    fn lines_fit_unless_they_cannot() {
        let (wide, fits) = ("x".repeat(101), "ü".repeat(100));
        let address = format!("// https://{wide}");
        let text = format!("f(\"{wide}\")");
        let files = [
            ("a.rs", wide.as_str()),
            ("b.rs", fits.as_str()),
            ("c.md", wide.as_str()),
            ("d.py", address.as_str()),
            ("e.rs", text.as_str()),
            (".ci/run", wide.as_str()),
        ];
        check(width, &tree(&files), &["a.rs:1", ".ci/run:1"]);
    }

    #[test]
    fn nothing_names_the_outside() {
        let host = format!("https://{}/simple", concat!("pypi", ".org"));
        let home = format!("cd {}x", concat!("/ho", "me/"));
        let inner = format!("cd docs{}x", concat!("/ho", "me/"));
        let files = [("a.toml", host.as_str()), ("b.sh", home.as_str()), ("c.sh", inner.as_str())];
        check(outside_names, &tree(&files), &["a.toml:1", "b.sh:1"]);
    }

    #[test]
    fn a_crate_has_one_integration_binary() {
        let files = [
            ("crates/a/tests/it/main.rs", ""),
            ("crates/a/tests/other.rs", ""),
            ("tests/acceptance/x.rs", ""),
        ];
        check(integration_tests, &tree(&files), &["crates/a/tests/other.rs:0"]);
    }
}
