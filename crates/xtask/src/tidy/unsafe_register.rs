//! The register of unsafe code, `docs/unsafe.md`.
//!
//! One row for each file with `unsafe` in it: the file, why it needs it, and which tool has
//! checked it. The why is the reason of the file's `#![expect(unsafe_code, reason = "…")]`, so it
//! is written once; the tool is written by hand. `cargo xtask check --bless` rewrites the page and
//! keeps the tools; a new file's row has none, and the rule asks for it.

use std::fmt::Write;

use super::rust_text::RustText;
use super::{Problem, SourceFile, Tree};

pub(super) const PATH: &str = "docs/unsafe.md";
const SECTION: &str = "Unsafe and concurrency";

const HEADER: &str = "\
# Unsafe code

Every file with `unsafe` in it, why it needs it, and which tool has checked it: AddressSanitizer
(a fuzz target under `cargo xtask fuzz --asan`), valgrind (memcheck over the module's tests), loom.
`cargo xtask check --bless` writes the first two columns from the sources; the third is kept. Tidy
fails on a file without a row, a row without a file and a row without a tool.

| file | why | checked by |
| --- | --- | --- |
";

/// A file with unsafe code.
struct Site<'a> {
    path: &'a str,
    /// The reason in its `expect`; none if it has no such attribute.
    why: Option<&'a str>,
}

/// The register names every file with unsafe code, with its reason and a tool, and no other.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let sites: Vec<Site> = sites(tree).collect();
    let rows = rows(tree);
    let mut problems = Vec::new();
    for site in &sites {
        let mut problem = |what| problems.push(Problem::new(site.path, 0, what, SECTION));
        let Some(why) = site.why else {
            problem("unsafe code without #![expect(unsafe_code, reason = \"…\")] at the top");
            continue;
        };
        match rows.iter().find(|row| row[0] == site.path) {
            None => problem("unsafe code without a row in docs/unsafe.md: check --bless adds it"),
            Some(row) if row[1] != why => problem("docs/unsafe.md gives another reason: --bless"),
            Some(row) if row[2].is_empty() => problem("docs/unsafe.md names no tool"),
            Some(_) => {}
        }
    }
    for row in rows {
        if !sites.iter().any(|site| site.path == row[0]) {
            let what = format!("{} has no unsafe code: check --bless takes it off", row[0]);
            problems.push(Problem::new(PATH, 0, what, SECTION));
        }
    }
    problems
}

/// The page as it should be, with the tools that the present one names.
pub(super) fn bless(tree: &Tree) -> String {
    let rows = rows(tree);
    let mut page = HEADER.to_owned();
    for Site { path, why } in sites(tree) {
        let tool = rows.iter().find(|row| row[0] == path).map_or("", |row| row[2]);
        let why = why.unwrap_or_default();
        writeln!(page, "| `{path}` | {why} | {tool} |").expect("writing to a string does not fail");
    }
    page
}

/// The rows of the present page: file, why, tool.
fn rows(tree: &Tree) -> Vec<[&str; 3]> {
    let page = tree.files.iter().find(|file| file.path == PATH);
    let lines = page.into_iter().flat_map(|page| page.text.lines());
    lines
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.strip_suffix('|')?.split(" | ");
            let file = cells.next()?.trim_end_matches('`');
            Some([file, cells.next()?.trim(), cells.next().unwrap_or_default().trim()])
        })
        .collect()
}

/// The files with unsafe code. The attribute of a module holds for the modules inside it, so these
/// may go without one; the module's tests then need no row of their own.
fn sites(tree: &Tree) -> impl Iterator<Item = Site<'_>> {
    tree.rust_files().filter(|(_, rust)| rust.has_word("unsafe")).filter_map(|(file, rust)| {
        let outer = || {
            let parent = format!("{}.rs", file.path.rsplit_once('/')?.0);
            let (parent, rust) = tree.rust_files().find(|(file, _)| file.path == parent)?;
            reason(parent, rust)
        };
        match reason(file, rust) {
            None if file.is_test() && outer().is_some() => None,
            own => Some(Site { path: &file.path, why: own.or_else(outer) }),
        }
    })
}

/// The reason of the attribute that lets a file have unsafe code.
fn reason<'a>(file: &SourceFile, rust: &'a RustText) -> Option<&'a str> {
    let (line, _) = file
        .lines()
        .find(|(_, line)| line.contains("expect(unsafe_code"))
        .or_else(|| file.lines().find(|(_, line)| line.trim() == "unsafe_code,"))?;
    let literal = rust.strings.iter().find(|literal| literal.line >= line)?;
    Some(&literal.text)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check as check_rule, tree};
    use super::{HEADER, PATH, bless, check};

    const UNSAFE: &str =
        "//! A.\n#![expect(unsafe_code, reason = \"SIMD\")]\nfn a() { unsafe { b() } }\n";

    fn page(rows: &str) -> String {
        format!("{HEADER}{rows}")
    }

    #[test]
    fn each_file_needs_a_full_row() {
        for (rows, wanted) in [
            ("| `a.rs` | SIMD | valgrind |\n", &[][..]),
            ("| `a.rs` | SIMD |  |\n", &["a.rs:0"]),
            ("| `a.rs` | other | valgrind |\n", &["a.rs:0"]),
            ("", &["a.rs:0"]),
            ("| `a.rs` | SIMD | loom |\n| `b.rs` | SIMD | loom |\n", &["docs/unsafe.md:0"]),
        ] {
            check_rule(check, &tree(&[("a.rs", UNSAFE), (PATH, &page(rows))]), wanted);
        }
    }

    #[test]
    fn unsafe_code_says_why() {
        let files = [("a.rs", "//! A.\nfn a() { unsafe { b() } }\n"), ("b.rs", "// unsafe\n")];
        check_rule(check, &tree(&files), &["a.rs:0"]);
    }

    #[test]
    fn an_inner_module_has_the_reason_of_the_outer() {
        let inner = "//! B.\nfn a() { unsafe { b() } }\n";
        let files = [("a.rs", UNSAFE), ("a/b.rs", inner), ("a/tests.rs", inner)];
        let rows = page("| `a.rs` | SIMD |  |\n| `a/b.rs` | SIMD |  |\n");
        assert_eq!(bless(&tree(&files)), rows);
    }

    #[test]
    fn blessing_keeps_the_tools() {
        let old = page("| `a.rs` | old | loom |\n| `gone.rs` | x | y |\n");
        let files = [("a.rs", UNSAFE), ("b.rs", UNSAFE), (PATH, old.as_str())];
        let new = bless(&tree(&files));
        assert_eq!(new, page("| `a.rs` | SIMD | loom |\n| `b.rs` | SIMD |  |\n"));
        let files = [("a.rs", UNSAFE), ("b.rs", UNSAFE), (PATH, new.as_str())];
        check_rule(check, &tree(&files), &["b.rs:0"]);
    }
}
