//! Which clients CLIENT LIST shows and CLIENT KILL closes, and a client as a line of text.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::clock::UnixMs;
use kiln_base::sync::Arc;
use kiln_base::sync::atomic::Ordering;
use kiln_command::args::ArgsExt;
use kiln_command::clients::Client;
use kiln_command::{Args, CommandError, CommandTable, echo};

/// The kinds that TYPE tells apart. Only `normal` clients exist yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientType {
    Normal,
    Primary,
    Replica,
    PubSub,
}

impl ClientType {
    pub(super) fn parse(word: &[u8]) -> Result<Self, CommandError> {
        match word.to_ascii_lowercase().as_slice() {
            b"normal" => Ok(Self::Normal),
            b"master" | b"primary" => Ok(Self::Primary),
            b"slave" | b"replica" => Ok(Self::Replica),
            b"pubsub" => Ok(Self::PubSub),
            _ => {
                let word = echo(word);
                Err(CommandError::owned(format!("ERR Unknown client type '{word}'")))
            }
        }
    }
}

/// The filters of CLIENT KILL; a client must pass all that are given.
#[derive(Debug, Default)]
pub(super) struct Filter<'a> {
    id: Option<u64>,
    kind: Option<ClientType>,
    addr: Option<&'a [u8]>,
    laddr: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    max_age_s: Option<i64>,
    include_me: bool,
}

impl<'a> Filter<'a> {
    /// Reads `name value` pairs.
    pub(super) fn parse(args: &Args<'a>) -> Result<Self, CommandError> {
        let mut filter = Self::default();
        let mut at = 0;
        while at < args.len() {
            let Some(value) = args.try_get(at + 1) else { return Err(CommandError::Syntax) };
            match args.get(at).to_ascii_uppercase().as_slice() {
                b"ID" => {
                    let id = args.int(at + 1).ok().and_then(|id| u64::try_from(id).ok());
                    let id = id
                        .filter(|id| *id > 0)
                        .ok_or(CommandError::text("ERR client-id should be greater than 0"))?;
                    filter.id = Some(id);
                }
                b"TYPE" => filter.kind = Some(ClientType::parse(value)?),
                b"ADDR" => filter.addr = Some(value),
                b"LADDR" => filter.laddr = Some(value),
                b"USER" if value == b"default" => filter.user = Some(value),
                b"USER" => {
                    let user = echo(value);
                    return Err(CommandError::owned(format!("ERR No such user '{user}'")));
                }
                b"SKIPME" if value.eq_ignore_ascii_case(b"yes") => filter.include_me = false,
                b"SKIPME" if value.eq_ignore_ascii_case(b"no") => filter.include_me = true,
                b"MAXAGE" => {
                    let age = args.int(at + 1).map_err(|_| {
                        CommandError::text("ERR maxage is not an integer or out of range")
                    })?;
                    if age <= 0 {
                        return Err(CommandError::text("ERR maxage should be greater than 0"));
                    }
                    filter.max_age_s = Some(age);
                }
                _ => return Err(CommandError::Syntax),
            }
            at += 2;
        }
        Ok(filter)
    }

    /// Whether `client` passes; `me` is the id of the client that asks.
    pub(super) fn admits(&self, client: &Client, me: u64, now: UnixMs) -> bool {
        let is = |wanted: Option<&[u8]>, text: &str| wanted.is_none_or(|it| it == text.as_bytes());
        self.id.is_none_or(|id| id == client.id)
            && self.kind.is_none_or(|kind| kind == ClientType::Normal)
            && is(self.addr, &client.addr)
            && is(self.laddr, &client.laddr)
            && is(self.user, &client.info.lock().user)
            && self.max_age_s.is_none_or(|age| (now - client.connected_ms) / 1_000 >= age)
            && (self.include_me || client.id != me)
    }
}

/// A client as CLIENT LIST shows it, without the line end.
pub(super) fn line(client: &Client, commands: &CommandTable, now: UnixMs) -> String {
    let info = client.info.lock().clone();
    let blocked = client.blocked.lock().is_some();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let load = |value: &kiln_base::sync::atomic::AtomicUsize| value.load(Ordering::Relaxed);
    let mut flags = String::new();
    for (set, flag) in [
        (info.monitor, 'O'),
        (blocked, 'b'),
        (info.multi >= 0, 'x'),
        (info.dirty, 'd'),
        (client.is_unix, 'U'),
        (info.no_evict, 'e'),
        (info.no_touch, 'T'),
    ] {
        if set {
            flags.push(flag);
        }
    }
    if flags.is_empty() {
        flags.push('N');
    }
    let command = client
        .last_command()
        .map_or_else(|| "NULL".to_owned(), |id| commands.get(id).spec.name.to_ascii_lowercase());
    let idle_ms = now - client.last_interaction_ms.load(Ordering::Relaxed);
    let (query, capacity) = (load(&client.query_bytes), load(&client.query_capacity));
    let output = load(&client.output_bytes);
    format!(
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub=0 psub=0 ssub=0 \
         multi={} watch={} qbuf={} qbuf-free={} argv-mem=0 multi-mem={} rbs={} rbp=0 obl={} oll=0 \
         omem={} tot-mem={} events=r cmd={} user={} redir=-1 resp={} lib-name={} lib-ver={} \
         io-thread={} tot-net-in={} tot-net-out={} tot-cmds={}",
        client.id,
        client.addr,
        client.laddr,
        client.fd,
        text(&info.name),
        (now - client.connected_ms).max(0) / 1_000,
        idle_ms.max(0) / 1_000,
        flags,
        info.db,
        info.multi,
        info.watch,
        query,
        capacity.saturating_sub(query),
        info.multi_bytes,
        output,
        output,
        output,
        capacity + output + info.multi_bytes + size_of::<Client>(),
        command,
        info.user,
        info.resp,
        text(&info.lib_name),
        text(&info.lib_ver),
        client.worker,
        client.net_input_bytes.load(Ordering::Relaxed),
        client.net_output_bytes.load(Ordering::Relaxed),
        client.commands.load(Ordering::Relaxed),
    )
}

/// The clients with these ids that are connected, in the order of the ids.
pub(super) fn by_ids(
    all: &[Arc<Client>],
    args: &Args<'_>,
) -> Result<Vec<Arc<Client>>, CommandError> {
    let mut found = Vec::new();
    for index in 0..args.len() {
        let id = args.int(index).ok().and_then(|id| u64::try_from(id).ok());
        let id = id.ok_or(CommandError::text("ERR Invalid client ID"))?;
        found.extend(all.iter().find(|client| client.id == id).cloned());
    }
    Ok(found)
}
