//! `cargo xtask bench`: builds Kiln and the load generator as users get them, makes sure that the
//! peers are there, and hands over to `kiln-bench compare`, or `growth` or `vector` if asked.

use anyhow::Result;

use crate::repo::{self, Repo};
use crate::venv::Venv;

/// Runs a measurement; `args` are `kiln-bench`'s own.
pub(crate) fn run(repo: &Repo, args: &[&str]) -> Result<bool> {
    let venv = Venv::open(repo)?;
    repo::run(&mut repo.cargo(&["build", "--release", "--package", "kiln-server"]))?;
    repo::run(&mut repo.cargo(&["build", "--release", "--package", "kiln-bench"]))?;
    let built = repo.target.join("release");
    let (action, args) = match args {
        [action @ ("growth" | "vector"), args @ ..] => (*action, args),
        ["compare", args @ ..] | args => ("compare", args),
    };
    let mut bench = repo.command(built.join("kiln-bench"));
    bench.arg(action).arg("--kiln").arg(built.join("kiln-server"));
    bench.arg("--redis").arg(&venv.redis_server).arg("--valkey").arg(&venv.valkey_server);
    Ok(bench.args(args).status()?.success())
}
