//! `cargo xtask bench`: builds Kiln and the load generator as users get them, makes sure that the
//! peers are there, and hands over to `kiln-bench compare`, or to another of its actions if asked.

use anyhow::Result;

use crate::repo::{self, Repo};
use crate::venv::{self, Venv};

/// Runs a measurement; `args` are `kiln-bench`'s own.
pub(crate) fn run(repo: &Repo, args: &[&str]) -> Result<bool> {
    let (action, args) = match args {
        [action @ ("compare" | "growth" | "vector" | "vector-library"), args @ ..] => {
            (*action, args)
        }
        args => ("compare", args),
    };
    let built = repo.target.join("release");
    let mut bench = repo.command(built.join("kiln-bench"));
    bench.arg(action);
    if action == "vector-library" {
        bench.arg("--python").arg(venv::vector_libraries(repo)?);
    } else {
        let venv = Venv::open(repo)?;
        repo::run(&mut repo.cargo(&["build", "--release", "--package", "kiln-server"]))?;
        bench.arg("--kiln").arg(built.join("kiln-server"));
        bench.arg("--redis").arg(&venv.redis_server).arg("--valkey").arg(&venv.valkey_server);
    }
    repo::run(&mut repo.cargo(&["build", "--release", "--package", "kiln-bench"]))?;
    Ok(bench.args(args).status()?.success())
}
