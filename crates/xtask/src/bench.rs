//! `cargo xtask bench`: builds Kiln and the load generator as users get them, makes sure that the
//! peers are there, and hands over to `kiln-bench compare`.

use anyhow::Result;

use crate::repo::{self, Repo};
use crate::venv::Venv;

/// Runs the comparison; `args` are `kiln-bench compare`'s own.
pub(crate) fn run(repo: &Repo, args: &[&str]) -> Result<bool> {
    let venv = Venv::open(repo)?;
    repo::run(&mut repo.cargo(&["build", "--release", "--package", "kiln-server"]))?;
    repo::run(&mut repo.cargo(&["build", "--release", "--package", "kiln-bench"]))?;
    let built = repo.target.join("release");
    let mut compare = repo.command(built.join("kiln-bench"));
    compare.arg("compare").arg("--kiln").arg(built.join("kiln-server"));
    compare.arg("--redis").arg(&venv.redis_server).arg("--valkey").arg(&venv.valkey_server);
    Ok(compare.args(args).status()?.success())
}
