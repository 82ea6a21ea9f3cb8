//! Tidy: the rules of style that a program can check.
//!
//! A rule is a function from the [`Tree`] to its problems, named in [`RULES`]; each problem names
//! the section of the style guide that it is about. A rule that the present code does not yet
//! keep has a list of offenders, which may only shrink: an entry that no longer offends is a
//! problem too (see [`ratchet`]). Rules look at text and at `cargo metadata`, never at types, so
//! all of them together take well under a second.
//!
//! Left out: whatever rustfmt, rustc or clippy already say.

mod manifest;
mod rust_text;
mod sources;
mod unsafe_register;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::repo::Repo;
use crate::tidy::rust_text::RustText;

/// Folders that are not part of the sources.
const IGNORED_FOLDERS: [&str; 6] =
    ["target", ".git", "__pycache__", ".pytest_cache", "corpus", "artifacts"];

/// Every rule, in the order in which their problems are shown.
const RULES: [fn(&Tree) -> Vec<Problem>; 12] = [
    manifest::layers,
    manifest::unused_dependencies,
    manifest::licences,
    sources::headers,
    sources::sync_facade,
    sources::wire_texts,
    sources::fixme,
    sources::blobs,
    sources::width,
    sources::outside_names,
    sources::integration_tests,
    unsafe_register::check,
];

/// Something that a rule found.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    path: String,
    /// From 1; 0 when it is about the whole file.
    line: usize,
    what: String,
    /// The section of the style guide that says why.
    section: &'static str,
}

impl Problem {
    fn new(path: &str, line: usize, what: impl Into<String>, section: &'static str) -> Problem {
        Problem { path: path.to_owned(), line, what: what.into(), section }
    }
}

/// A file of the checkout.
struct SourceFile {
    /// Relative to the root, with `/`.
    path: String,
    size: u64,
    /// Empty when the file is not text.
    text: String,
    /// The same split into code and strings, for Rust files.
    rust: Option<RustText>,
}

impl SourceFile {
    fn new(path: &str, text: &str) -> SourceFile {
        let is_rust = Path::new(path).extension().is_some_and(|extension| extension == "rs");
        SourceFile {
            path: path.to_owned(),
            size: text.len() as u64,
            text: text.to_owned(),
            rust: is_rust.then(|| RustText::split(text)),
        }
    }

    /// Whether the whole file is test code.
    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// The lines, counted from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// All that the rules look at.
struct Tree {
    files: Vec<SourceFile>,
    metadata: Value,
}

impl Tree {
    fn read(repo: &Repo) -> Result<Tree> {
        let mut files = Vec::new();
        read_folder(&repo.root, &repo.root, &repo.target, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Tree { files, metadata: repo.metadata.clone() })
    }

    /// The Rust files, with their split text.
    fn rust_files(&self) -> impl Iterator<Item = (&SourceFile, &RustText)> {
        self.files.iter().filter_map(|file| Some((file, file.rust.as_ref()?)))
    }
}

fn read_folder(
    root: &Path,
    folder: &Path,
    target: &Path,
    files: &mut Vec<SourceFile>,
) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry.context("read a folder's entry")?;
        let path = entry.path();
        let name = entry.file_name();
        let kind = entry.file_type().context("read an entry's type")?;
        if kind.is_dir() {
            let ignored = IGNORED_FOLDERS.iter().any(|ignored| name == *ignored);
            if !ignored && path != target {
                read_folder(root, &path, target, files)?;
            }
        } else if kind.is_file() && name != ".git" {
            let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            let size = bytes.len() as u64;
            let inside = path.strip_prefix(root).context("stay below the root")?;
            let inside = inside.to_string_lossy().replace('\\', "/");
            let text = String::from_utf8(bytes).unwrap_or_default();
            files.push(SourceFile { size, ..SourceFile::new(&inside, &text) });
        }
    }
    Ok(())
}

/// Runs all rules over the checkout.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let tree = Tree::read(repo)?;
    let problems: Vec<Problem> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    for Problem { path, line, what, section } in &problems {
        eprintln!("{path}:{line}: {what} (style: {section})");
    }
    if !problems.is_empty() {
        bail!("{} problems of style", problems.len());
    }
    Ok(())
}

/// Rewrites what tidy can write itself: `docs/unsafe.md`.
pub(crate) fn bless(repo: &Repo) -> Result<()> {
    let tree = Tree::read(repo)?;
    let path = repo.root.join(unsafe_register::PATH);
    fs::write(path, unsafe_register::bless(&tree)).context("write the unsafe register")
}

/// Takes the problems of files that were offenders when the rule was new, and adds one for each
/// listed file that offends no more: its entry must go, so that it cannot come back.
fn ratchet(problems: Vec<Problem>, offenders: &[&str], section: &'static str) -> Vec<Problem> {
    let healed = offenders.iter().filter(|path| !problems.iter().any(|p| p.path == **path));
    let mut left: Vec<Problem> = healed
        .map(|path| Problem::new(path, 0, "no longer offends: take it off tidy's list", section))
        .collect();
    left.extend(problems.into_iter().filter(|p| !offenders.contains(&p.path.as_str())));
    left
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{Problem, SourceFile, Tree, ratchet, run};
    use crate::repo::Repo;

    /// A tree of files given as path and text.
    pub(super) fn tree(files: &[(&str, &str)]) -> Tree {
        let files = files.iter().map(|(path, text)| SourceFile::new(path, text)).collect();
        Tree { files, metadata: Value::Null }
    }

    /// Expects `rule` to find problems at exactly `wanted`, as `path:line`.
    pub(super) fn check(rule: fn(&Tree) -> Vec<Problem>, tree: &Tree, wanted: &[&str]) {
        let problems = rule(tree);
        let got: Vec<String> =
            problems.iter().map(|problem| format!("{}:{}", problem.path, problem.line)).collect();
        assert_eq!(got, wanted, "{problems:#?}");
    }

    #[test]
    fn the_checkout_is_tidy() {
        run(&Repo::open().unwrap()).unwrap();
    }

    #[test]
    fn a_ratchet_only_turns_one_way() {
        let found = |path| Problem::new(path, 3, "bad", "Names");
        let got =
            ratchet(vec![found("old.rs"), found("new.rs")], &["old.rs", "healed.rs"], "Names");
        let paths: Vec<&str> = got.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["healed.rs", "new.rs"]);
    }
}
