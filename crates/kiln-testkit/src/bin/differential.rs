//! `differential`: random commands to Kiln and to a peer; exits with 1 if they ever differ.

use std::io;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use kiln_testkit::differential::{Options, Target, run};
use kiln_testkit::generate::Family;

const USAGE: &str = "usage: differential --kiln PATH|HOST:PORT --peer PATH|HOST:PORT
    [--commands 200000] [--seed 1] [--resp 2|3|both] [--stop-after 20] [--known-only yes]
    [--args '--hash-max-listpack-entries 8 ...']
    [--families strings,bitmaps,hyperloglog,keys,lists,sets,hashes,sorted-sets,vectors,scan,
                sort,transactions,blocking,connection,arity]

A server given by its path is started without persistence.
A server given by its address LOSES ALL ITS DATA.
--known-only leaves out commands that Kiln does not know yet.
Each new kind of difference is printed with the commands that show it.";

fn main() -> anyhow::Result<ExitCode> {
    let options = parse(std::env::args().skip(1))?;
    let mut out = io::stdout().lock();
    let summary = run(&options, &mut out)?;
    for (kind, count) in &summary.differences {
        eprintln!("{count:>6}  {kind}");
    }
    eprintln!(
        "{} commands, seed {}: {} kinds of differences",
        summary.commands,
        options.seed,
        summary.differences.len()
    );
    Ok(ExitCode::from(u8::from(!summary.differences.is_empty())))
}

fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Options> {
    let mut options = Options {
        kiln: Target::Program("".into()),
        peer: Target::Program("".into()),
        commands: 200_000,
        seed: 1,
        server_args: Vec::new(),
        families: Family::all(),
        protocols: vec![2, 3],
        stop_after: 20,
        known_only: false,
    };
    while let Some(name) = words.next() {
        let value = words.next().with_context(|| format!("{name} needs a value\n\n{USAGE}"))?;
        match name.as_str() {
            "--kiln" => options.kiln = value.parse()?,
            "--peer" => options.peer = value.parse()?,
            "--commands" => options.commands = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            "--args" => {
                options.server_args = value.split_whitespace().map(str::to_owned).collect();
            }
            "--known-only" => options.known_only = value == "yes",
            "--stop-after" => options.stop_after = value.parse()?,
            "--families" => {
                let families: Result<_, _> = value.split(',').map(str::parse).collect();
                options.families = families.map_err(anyhow::Error::msg)?;
            }
            "--resp" => {
                options.protocols = match value.as_str() {
                    "2" => vec![2],
                    "3" => vec![3],
                    "both" => vec![2, 3],
                    _ => bail!("--resp is 2, 3 or both"),
                };
            }
            _ => bail!("unknown option {name}\n\n{USAGE}"),
        }
    }
    for target in [&options.kiln, &options.peer] {
        if *target == Target::Program("".into()) {
            bail!("{USAGE}");
        }
    }
    Ok(options)
}
