//! One width and quantization on every server: load, recall, speed round by round, filters.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::VectorArgs;
use super::data::{ATTRIBUTE_VALUES, COUNT, Form, KEPT_PER_MILLE};
use super::outcome::{Cell, Load, Setting, VectorRun, Way};
use super::wire::{self, Face, Quantization, Search};
use crate::load::{Fleet, Until};
use crate::report::ServerInfo;
use crate::server::{Kind, Server, ServerArgs};

/// Vectors on their way while one connection loads.
const LOAD_PIPELINE: usize = 16;

/// Connections that load at once where that is measured.
const LOAD_CONNECTIONS: usize = 32;

/// Threads and cores of the server then, shared with the load.
const LOAD_THREADS: usize = 2;

/// The effort at which a graph that many connections built is checked.
const CHECK_EF: usize = 80;

/// Efforts at which filters are measured.
const FILTER_EFS: [usize; 2] = [40, 150];

/// A loaded server.
struct Loaded {
    kind: Kind,
    face: Face,
    server: Server,
}

/// Measures all that `args` asks for.
pub(super) fn run(
    args: &VectorArgs,
    binaries: &[(Kind, PathBuf)],
    form: &Form,
    quantization: Quantization,
    run: &mut VectorRun,
) -> Result<()> {
    let mut contestants = Vec::new();
    for (kind, binary) in binaries {
        contestants.push((*kind, binary, Face::Set));
        // An index has no quantization.
        if args.index_face && *kind == Kind::Kiln && quantization == Quantization::None {
            contestants.push((*kind, binary, Face::Index));
        }
    }
    let mut loaded = Vec::new();
    for &(kind, binary, face) in &contestants {
        let setting = Setting { width: form.width(), quantization, way: Way::plain(kind, face) };
        tell(setting, "load");
        let (server, load) = load(setting, binary, &args.server, form, 1, LOAD_PIPELINE)
            .with_context(|| format!("load {}", setting.way.name()))?;
        run.loads.push(load);
        loaded.push(Loaded { kind, face, server });
        let server = &mut loaded.last_mut().expect("just pushed").server;
        if run.servers.iter().all(|known| known.kind != kind) {
            let binary = binary.display().to_string();
            run.servers.push(ServerInfo { kind, version: server.version()?, binary });
        }
    }
    let mut ways: Vec<(usize, Way)> = Vec::new();
    for (at, each) in loaded.iter().enumerate() {
        let plain = Way::plain(each.kind, each.face);
        ways.push((at, plain));
        if each.kind == Kind::Redis {
            ways.push((at, Way { no_thread: true, ..plain }));
        }
    }
    searches(args, form, quantization, &ways, &mut loaded, run)?;
    if !args.no_filters {
        filters(args, form, quantization, &mut loaded, run)?;
    }
    drop(loaded);
    if !args.no_parallel_load {
        for &(kind, binary, face) in &contestants {
            let way = Way::plain(kind, face);
            let setting = Setting { width: form.width(), quantization, way };
            tell(setting, "load over many connections");
            let cores = args.server.server_cores.and(&args.server.client_cores);
            let shared = ServerArgs {
                server_cores: cores.clone(),
                client_cores: cores,
                threads: LOAD_THREADS,
                ..args.server.clone()
            };
            let (mut server, mut load) = load(setting, binary, &shared, form, LOAD_CONNECTIONS, 1)
                .with_context(|| format!("load {}", way.name()))?;
            let search = way.search(CHECK_EF, ATTRIBUTE_VALUES);
            load.recall = Some((CHECK_EF, recall(&mut server, search, form)?));
            run.loads.push(load);
        }
    }
    Ok(())
}

/// Starts a server and loads all rows over `connections`.
fn load(
    setting: Setting,
    binary: &Path,
    args: &ServerArgs,
    form: &Form,
    connections: usize,
    pipeline: usize,
) -> Result<(Server, Load)> {
    let Setting { quantization, way, .. } = setting;
    let rows = form.base.len();
    let mut server = Server::start(way.kind, binary, args)?;
    if let Some(create) = wire::create(way.face, form.width()) {
        server.ask(create.batch(0).0)?;
    }
    let requests = wire::load(way.face, quantization, &form.base, 0..rows, pipeline);
    let threads = args.client_cores.count().min(connections);
    let mut fleet =
        Fleet::connect(server.address(), connections, threads, Some(&args.client_cores))?;
    let (resident, before) = (server.resident_bytes()?, server.idle_cpu()?);
    let outcome = fleet.run(&requests, Until::Sent)?;
    let cpu = server.idle_cpu()?.since(before);
    let grown = server.resident_bytes()?.saturating_sub(resident);
    let mut accounted = None;
    if way.face == Face::Set {
        let bytes: u64 = server.call(&["MEMORY", "USAGE", wire::KEY])?.parse()?;
        accounted = Some(bytes as f64 / rows as f64);
        let count = server.call(&["VCARD", wire::KEY])?;
        ensure!(count == rows.to_string(), "VCARD is {count}, not the {rows} that were loaded");
    }
    let load = Load {
        setting,
        rows,
        connections,
        elapsed_s: outcome.elapsed.as_secs_f64(),
        cpu_s: (cpu.user_ms + cpu.system_ms) as f64 / 1e3,
        resident_bytes: grown as f64 / rows as f64,
        accounted_bytes: accounted,
        recall: None,
    };
    Ok((server, load))
}

/// Every effort and number of clients, each on every server before the next, round by round.
fn searches(
    args: &VectorArgs,
    form: &Form,
    quantization: Quantization,
    ways: &[(usize, Way)],
    loaded: &mut [Loaded],
    run: &mut VectorRun,
) -> Result<()> {
    let width = form.width();
    let mut recalls = Vec::new();
    for &ef in &args.efs {
        for &(at, way) in ways {
            tell(Setting { width, quantization, way }, &format!("recall at EF {ef}"));
            let search = way.search(ef, ATTRIBUTE_VALUES);
            recalls.push(recall(&mut loaded[at].server, search, form)?);
        }
    }
    for round in 0..args.rounds {
        eprintln!("kiln-bench: round {} of {}", round + 1, args.rounds);
        for (ef_at, &ef) in args.efs.iter().enumerate() {
            for &clients in &args.clients {
                for turn in 0..ways.len() {
                    let place = (turn + round) % ways.len();
                    let (at, way) = ways[place];
                    let setting = Setting { width, quantization, way };
                    let search = way.search(ef, ATTRIBUTE_VALUES);
                    let server = &loaded[at].server;
                    let mut cell = measure(args, server, search, setting, form, clients)
                        .with_context(|| format!("{} at EF {ef}", way.name()))?;
                    cell.round = round;
                    cell.recall = recalls[ef_at * ways.len() + place];
                    run.cells.push(cell);
                }
            }
        }
    }
    Ok(())
}

/// Searches that keep some rows only, one client, on vector sets.
fn filters(
    args: &VectorArgs,
    form: &Form,
    quantization: Quantization,
    loaded: &mut [Loaded],
    run: &mut VectorRun,
) -> Result<()> {
    let mut sets: Vec<&mut Loaded> =
        loaded.iter_mut().filter(|each| each.face == Face::Set).collect();
    let attributes = wire::attributes(form.base.len(), LOAD_PIPELINE);
    for each in &sets {
        let cores = Some(&args.server.client_cores);
        let mut fleet = Fleet::connect(each.server.address(), 1, 1, cores)?;
        fleet.run(&attributes, Until::Sent).context("set attributes")?;
    }
    for ef in FILTER_EFS {
        for kept in KEPT_PER_MILLE {
            for each in &mut sets {
                let way = Way::plain(each.kind, each.face);
                let setting = Setting { width: form.width(), quantization, way };
                let search = way.search(ef, kept);
                let recall = recall(&mut each.server, search, form)?;
                let cell = measure(args, &each.server, search, setting, form, 1)?;
                run.filtered.push(Cell { recall, ..cell });
            }
        }
    }
    Ok(())
}

/// The share of the exact answers that the server finds.
fn recall(server: &mut Server, search: Search, form: &Form) -> Result<f64> {
    let requests = search.requests(&form.queries);
    let (mut found, mut wanted) = (0, 0);
    for query in 0..form.queries.len() {
        let near = form.nearest(query, search.kept_per_mille);
        let rows = search.found(&server.ask(requests.batch(query).0)?);
        ensure!(rows.len() <= COUNT, "more results than were asked for");
        found += near.iter().filter(|row| rows.contains(row)).count();
        wanted += near.len();
    }
    Ok(found as f64 / wanted as f64)
}

/// Speed at one setting; recall and round are the caller's.
fn measure(
    args: &VectorArgs,
    server: &Server,
    search: Search,
    setting: Setting,
    form: &Form,
    clients: usize,
) -> Result<Cell> {
    let requests = search.requests(&form.queries);
    let cores = &args.server.client_cores;
    let threads = cores.count().min(clients);
    let mut fleet = Fleet::connect(server.address(), clients, threads, Some(cores))?;
    let before = server.idle_cpu()?;
    let outcome =
        fleet.run(&requests, Until::Elapsed(Duration::try_from_secs_f64(args.seconds)?))?;
    let cpu = server.idle_cpu()?.since(before);
    Ok(Cell {
        setting,
        kept_per_mille: search.kept_per_mille,
        ef: search.ef,
        clients,
        round: 0,
        recall: f64::NAN,
        queries: outcome.commands,
        per_second: outcome.per_second(),
        cpu_us: (cpu.user_ms + cpu.system_ms) as f64 * 1e3 / outcome.commands as f64,
        p50_us: outcome.latency_us(0.5),
        p99_us: outcome.latency_us(0.99),
    })
}

fn tell(setting: Setting, what: &str) {
    let Setting { width, quantization, way } = setting;
    eprintln!("kiln-bench: {width} {}: {}: {what}", quantization.name(), way.name());
}
