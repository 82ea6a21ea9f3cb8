//! Rules about manifests: which crate may use which, which dependencies are used, which licences
//! they have. They read `cargo metadata`, so a rename or a feature cannot fool them.

use serde_json::Value;

use super::rust_text::has_word;
use super::{Problem, Tree, ratchet};

const SECTION: &str = "Workspace and crates";

/// The crates in rows, from the bottom: a crate may use only the rows below its own (DESIGN
/// section 8).
const ROWS: [&[&str]; 9] = [
    &["kiln-base"],
    &["kiln-data", "kiln-vector", "kiln-resp"],
    &["kiln-keyspace"],
    &["kiln-persist"],
    &["kiln-command"],
    &["kiln-redis", "kiln-search", "kiln-ai"],
    &["kiln-replication", "kiln-cluster"],
    &["kiln-net"],
    &["kiln-server"],
];
/// Crates beside the rows: they may use any row, no crate ships them.
const TOOLS: [&str; 3] = ["kiln-testkit", "kiln-bench", "xtask"];
/// The one tool that the tests of any crate may use.
const TESTKIT: &str = "kiln-testkit";

/// Manifests that named dependencies ahead of the code that uses them when the rule was new.
const UNUSED_OFFENDERS: &[&str] = &[];

/// The licences that a dependency may be under. No copyleft: Kiln is one static binary.
const LICENCES: [&str; 10] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "BSL-1.0",
    "Unicode-3.0",
    "Unlicense",
];

/// No upward or sideways edge between Kiln's crates.
pub(super) fn layers(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in members(tree) {
        let name = text(package, "name");
        let path = format!("crates/{name}/Cargo.toml");
        if text(package, "manifest_path").replace('\\', "/").ends_with(&format!("/{path}")) {
            for used in dependencies(package) {
                if let Some(why) = forbidden_edge(name, text(used, "name"), text(used, "kind")) {
                    problems.push(Problem::new(&path, 0, why, SECTION));
                }
            }
        } else {
            let what = format!("the folder of {name} must be crates/{name}");
            problems.push(Problem::new(&path, 0, what, SECTION));
        }
        if row(name).is_none() && !TOOLS.contains(&name) {
            let what = format!("{name} has no row: see DESIGN section 8 and tidy's ROWS");
            problems.push(Problem::new(&path, 0, what, SECTION));
        }
    }
    problems
}

/// Why `user` may not depend on `used`, if it may not.
fn forbidden_edge(user: &str, used: &str, kind: &str) -> Option<String> {
    if TOOLS.contains(&used) {
        let testing = kind == "dev" && used == TESTKIT;
        let among_tools = TOOLS.contains(&user);
        return (!testing && !among_tools).then(|| format!("only tests may use {used}"));
    }
    let used_row = row(used)?;
    let user_row = row(user)?; // A tool uses what it likes.
    let direction = match used_row.cmp(&user_row) {
        std::cmp::Ordering::Less => return None,
        std::cmp::Ordering::Equal => "beside",
        std::cmp::Ordering::Greater => "above",
    };
    Some(format!("{user} uses {used}, which is {direction} it: only rows below may be used"))
}

/// The row of a crate, 0 at the bottom.
fn row(name: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&name))
}

/// Every dependency that the root manifest names is used by a crate, and every dependency of a
/// crate is named in its sources.
pub(super) fn unused_dependencies(tree: &Tree) -> Vec<Problem> {
    ratchet(all_unused_dependencies(tree), UNUSED_OFFENDERS, SECTION)
}

fn all_unused_dependencies(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    // A crate of our own needs no user: it may be the top, or a tool.
    let mut used: Vec<&str> = members(tree).map(|package| text(package, "name")).collect();
    used.extend(members(tree).flat_map(dependencies).map(|d| text(d, "name")));
    // The fuzz crate is outside the workspace, so the metadata does not know of it.
    used.extend(declared(tree, "fuzz/Cargo.toml", "[dependencies]").iter().map(|(_, name)| name));
    for (line, name) in declared(tree, "Cargo.toml", "[workspace.dependencies]") {
        if !used.contains(&name) {
            let what = format!("no crate uses {name}");
            problems.push(Problem::new("Cargo.toml", line, what, SECTION));
        }
    }
    for package in members(tree) {
        let folder = format!("crates/{}/", text(package, "name"));
        for dependency in dependencies(package) {
            let name = dependency["rename"].as_str().unwrap_or(text(dependency, "name"));
            let ident = name.replace('-', "_");
            let mut sources = tree.rust_files().filter(|(file, _)| file.path.starts_with(&folder));
            if !sources.any(|(_, rust)| has_word(&rust.code, &ident)) {
                let path = format!("{folder}Cargo.toml");
                problems.push(Problem::new(&path, 0, format!("{name} is not used"), SECTION));
            }
        }
    }
    problems
}

/// The dependencies that a section of a manifest declares, with their lines.
fn declared<'a>(tree: &'a Tree, path: &str, section: &str) -> Vec<(usize, &'a str)> {
    let Some(manifest) = tree.files.iter().find(|file| file.path == path) else { return vec![] };
    let mut inside = false;
    let mut found = Vec::new();
    for (number, line) in manifest.lines().filter(|(_, line)| !line.starts_with('#')) {
        if line.starts_with('[') {
            inside = line.trim() == section;
        } else if inside && let Some((name, _)) = line.split_once(['=', '.']) {
            found.push((number, name.trim()));
        }
    }
    found
}

/// Every dependency is under a licence of [`LICENCES`], and `deny.toml` allows the same ones.
pub(super) fn licences(tree: &Tree) -> Vec<Problem> {
    let packages = tree.metadata["packages"].as_array().into_iter().flatten();
    let mut problems: Vec<Problem> = packages
        .filter(|package| !allowed(text(package, "license")))
        .map(|package| {
            let what = format!(
                "{} is under {:?}, which is not on tidy's list of licences",
                text(package, "name"),
                package["license"],
            );
            Problem::new("Cargo.lock", 0, what, SECTION)
        })
        .collect();
    if let Some(deny) = tree.files.iter().find(|file| file.path == "deny.toml") {
        let allow = deny.text.split_once("\nallow = [").map_or("", |(_, allow)| allow);
        let allow = allow.split_once(']').map_or("", |(allow, _)| allow);
        let mut allow: Vec<&str> = allow.split('"').skip(1).step_by(2).collect();
        let mut wanted = LICENCES.to_vec();
        allow.sort_unstable();
        wanted.sort_unstable();
        if allow != wanted {
            problems.push(Problem::new("deny.toml", 0, "allows other licences than tidy", SECTION));
        }
    }
    problems
}

/// Whether a licence expression (SPDX, or the older form with `/`) can be met with [`LICENCES`].
fn allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let ok = any_of(&words, &mut at);
    ok && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize) -> bool {
    let mut ok = all_of(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        ok |= all_of(words, at);
    }
    ok
}

fn all_of(words: &[&str], at: &mut usize) -> bool {
    let mut ok = single(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        ok &= single(words, at);
    }
    ok
}

fn single(words: &[&str], at: &mut usize) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let ok = any_of(words, at);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return ok && closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let licence = words.get(*at - 1..*at + 2).unwrap_or_default().join(" ");
        *at += 2;
        return LICENCES.contains(&licence.as_str());
    }
    LICENCES.contains(word)
}

/// The crates of the workspace.
fn members(tree: &Tree) -> impl Iterator<Item = &Value> {
    let ids = &tree.metadata["workspace_members"];
    let packages = tree.metadata["packages"].as_array().into_iter().flatten();
    packages.filter(|p| ids.as_array().is_some_and(|ids| ids.contains(&p["id"])))
}

fn dependencies(package: &Value) -> impl Iterator<Item = &Value> {
    package["dependencies"].as_array().into_iter().flatten()
}

/// A text field of the metadata, empty when it is null.
fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Tree;
    use super::super::tests::{check, tree};
    use super::{all_unused_dependencies, allowed, forbidden_edge, layers, licences};

    /// A crate: its name, its licence, its dependencies with their kinds.
    type Member<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

    /// A workspace of crates and files.
    fn workspace(members: &[Member<'_>], files: &[(&str, &str)]) -> Tree {
        let packages: Vec<Value> = members
            .iter()
            .map(|(name, license, dependencies)| {
                let dependencies: Vec<Value> = dependencies
                    .iter()
                    .map(|(name, kind)| json!({"name": name, "kind": kind, "rename": null}))
                    .collect();
                json!({
                    "name": name, "id": name, "license": license, "dependencies": dependencies,
                    "manifest_path": format!("/x/crates/{name}/Cargo.toml"),
                })
            })
            .collect();
        let ids: Vec<&str> = members.iter().map(|(name, ..)| *name).collect();
        Tree { metadata: json!({"packages": packages, "workspace_members": ids}), ..tree(files) }
    }

    #[test]
    fn edges_point_down() {
        for (user, used, kind) in [
            ("kiln-data", "kiln-base", ""),
            ("kiln-server", "kiln-base", ""),
            ("kiln-data", "kiln-testkit", "dev"),
            ("kiln-bench", "kiln-server", ""),
            ("kiln-bench", "kiln-testkit", ""),
            ("kiln-data", "serde", ""),
        ] {
            assert_eq!(forbidden_edge(user, used, kind), None, "{user} {used}");
        }
        for (user, used, kind) in [
            ("kiln-base", "kiln-data", ""),
            ("kiln-resp", "kiln-data", ""),
            ("kiln-redis", "kiln-ai", ""),
            ("kiln-data", "kiln-keyspace", "dev"),
            ("kiln-data", "kiln-testkit", ""),
            ("kiln-data", "xtask", "dev"),
        ] {
            assert!(forbidden_edge(user, used, kind).is_some(), "{user} {used}");
        }
    }

    #[test]
    fn each_crate_has_a_row() {
        let known = workspace(&[("kiln-base", "MIT", &[]), ("xtask", "MIT", &[])], &[]);
        check(layers, &known, &[]);
        let wrong = workspace(
            &[("kiln-new", "MIT", &[]), ("kiln-base", "MIT", &[("kiln-net", "dev")])],
            &[],
        );
        check(layers, &wrong, &["crates/kiln-new/Cargo.toml:0", "crates/kiln-base/Cargo.toml:0"]);
    }

    #[test]
    fn unused_dependencies_are_found() {
        let root = "[workspace.dependencies]\na = \"1\"\nb-c.version = \"1\"\n# d = 1\n[profile]\n";
        let source = ("crates/kiln-base/src/lib.rs", "use a::b; // b_c\n");
        let files = [("Cargo.toml", root), source];
        let both = workspace(&[("kiln-base", "MIT", &[("a", ""), ("b-c", "dev")])], &files);
        check(all_unused_dependencies, &both, &["crates/kiln-base/Cargo.toml:0"]);
        let one = workspace(&[("kiln-base", "MIT", &[("a", "")])], &files);
        check(all_unused_dependencies, &one, &["Cargo.toml:3"]);
        let fuzz = ("fuzz/Cargo.toml", "[dependencies]\nb-c = \"1\"\n");
        let one = workspace(&[("kiln-base", "MIT", &[("a", "")])], &[files[0], files[1], fuzz]);
        check(all_unused_dependencies, &one, &[]);
    }

    #[test]
    fn licence_expressions_are_understood() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        ] {
            assert!(allowed(good), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC", "MIT WITH x", "MIT MIT"] {
            assert!(!allowed(bad), "{bad}");
        }
        check(
            licences,
            &workspace(&[("a", "MIT", &[]), ("b", "AGPL-3.0", &[])], &[]),
            &["Cargo.lock:0"],
        );
        let deny = "[licenses]\nallow = [\n    \"MIT\",\n]\n";
        check(licences, &workspace(&[], &[("deny.toml", deny)]), &["deny.toml:0"]);
    }
}
