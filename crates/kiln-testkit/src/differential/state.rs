//! The whole state of a server, read back key by key.

use std::io;

use super::Difference;
use crate::client::Client;
use crate::normalize::Rule;
use crate::reply::Reply;
use crate::script;

/// Databases looked at: all that a server has by default.
const DATABASES: usize = 16;

/// The commands that read it.
pub(super) const COMMANDS: [&str; 11] = [
    "SELECT",
    "KEYS",
    "TYPE",
    "OBJECT",
    "PEXPIRETIME",
    "GET",
    "LRANGE",
    "SMEMBERS",
    "HGETALL",
    "HPEXPIRETIME",
    "ZRANGE",
];

/// One command that reads a part of the state, and its reply.
pub(super) struct Part {
    db: usize,
    words: Vec<Vec<u8>>,
    rule: Rule,
    reply: Reply,
}

/// Reads everything, in an order that depends on the data alone.
pub(super) fn read(client: &mut Client) -> io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for db in 0..DATABASES {
        client.call(&["SELECT", &db.to_string()])?;
        let mut keys: Vec<_> = match client.call(&["KEYS", "*"])? {
            Reply::Array(keys) => keys,
            other => vec![other],
        };
        keys.sort();
        let names: Vec<_> =
            keys.iter().filter_map(|key| key.as_bytes().map(<[u8]>::to_vec)).collect();
        let words = vec![b"KEYS".to_vec(), b"*".to_vec()];
        parts.push(Part { db, words, rule: Rule::Exact, reply: Reply::Array(keys) });

        let about =
            |words: &[&[u8]], rule| (words.iter().map(|word| word.to_vec()).collect(), rule);
        let mut queries = Vec::new();
        for name in &names {
            queries.push(about(&[b"TYPE", name], Rule::Exact));
            queries.push(about(&[b"OBJECT", b"ENCODING", name], Rule::Exact));
            queries.push(about(&[b"PEXPIRETIME", name], Rule::of(&[b"PEXPIRETIME".to_vec()])));
        }
        let first = parts.len();
        ask(client, db, queries, &mut parts)?;
        let contents = names.iter().zip(parts[first..].chunks(3));
        let queries =
            contents.map(|(name, about)| content(name, &about[0].reply, &about[1].reply)).collect();
        let first = parts.len();
        ask(client, db, queries, &mut parts)?;
        let queries = parts[first..].iter().flat_map(details).collect();
        ask(client, db, queries, &mut parts)?;
    }
    Ok(parts)
}

type Query = (Vec<Vec<u8>>, Rule);

fn ask(
    client: &mut Client,
    db: usize,
    queries: Vec<Query>,
    parts: &mut Vec<Part>,
) -> io::Result<()> {
    for (words, _) in &queries {
        client.push(words);
    }
    client.flush()?;
    for (words, rule) in queries {
        parts.push(Part { db, words, rule, reply: client.read()? });
    }
    Ok(())
}

/// The command that reads the value of a key of this type.
fn content(name: &[u8], kind: &Reply, encoding: &Reply) -> Query {
    let words: &[&[u8]] = match kind.as_bytes() {
        Some(b"list") => &[b"LRANGE", name, b"0", b"-1"],
        Some(b"set") => &[b"SMEMBERS", name],
        Some(b"hash") => &[b"HGETALL", name],
        Some(b"zset") => &[b"ZRANGE", name, b"0", b"-1", b"WITHSCORES"],
        Some(b"vectorset") => {
            // More than there are: all of them.
            let words = [b"VRANDMEMBER".to_vec(), name.to_vec(), b"10000".to_vec()];
            return (words.to_vec(), Rule::Unordered);
        }
        _ => &[b"GET", name],
    };
    let words: Vec<_> = words.iter().map(|word| word.to_vec()).collect();
    // These keep an order that clients see: insertion, or ascending numbers.
    let ordered = match kind.as_bytes() {
        Some(b"hash") => encoding.as_bytes() == Some(b"listpack"),
        Some(b"set") => encoding.as_bytes() == Some(b"intset"),
        _ => false,
    };
    let rule = if ordered { Rule::Exact } else { Rule::of(&words) };
    (words, rule)
}

/// The commands that read when the fields of a hash expire, or what belongs to the elements of a
/// vector set.
fn details(part: &Part) -> Vec<Query> {
    let Reply::Array(elements) = &part.reply else { return Vec::new() };
    let key = || part.words[1].clone();
    let query = |words: Vec<Vec<u8>>| {
        let rule = Rule::of(&words);
        (words, rule)
    };
    let name = |reply: &Reply| reply.as_bytes().map(<[u8]>::to_vec);
    match part.words[0].as_slice() {
        b"HGETALL" => {
            let mut fields: Vec<_> = elements.iter().step_by(2).filter_map(name).collect();
            fields.sort();
            let mut words = vec![b"HPEXPIRETIME".to_vec(), key(), b"FIELDS".to_vec()];
            words.push(fields.len().to_string().into_bytes());
            words.extend(fields);
            vec![query(words)]
        }
        b"VRANDMEMBER" => {
            let mut names: Vec<_> = elements.iter().filter_map(name).collect();
            names.sort();
            let about = |name: Vec<u8>| {
                ["VEMB", "VGETATTR"].map(|word| query(vec![word.into(), key(), name.clone()]))
            };
            let whole = query(vec![b"VINFO".to_vec(), key()]);
            names.into_iter().flat_map(about).chain([whole]).collect()
        }
        _ => Vec::new(),
    }
}

/// The parts that differ.
pub(super) fn compare(kiln: &[Part], peer: &[Part]) -> Vec<Difference> {
    // What is asked follows from the replies before: the lists are alike up to the first other key.
    let alike = kiln.iter().zip(peer).take_while(|(kiln, peer)| kiln.words == peer.words);
    let differ = alike.filter(|(kiln, peer)| !peer.rule.accepts(&kiln.reply, &peer.reply));
    let difference = |(kiln, peer): (&Part, &Part)| {
        let name = String::from_utf8_lossy(&peer.words[0]).into_owned();
        let detail = if name == "OBJECT" || name == "TYPE" {
            format!(" {} for {}", kiln.reply, peer.reply)
        } else {
            String::new()
        };
        Difference {
            step: None,
            what: format!("state of db {}: {}", peer.db, script::join(&peer.words)),
            kiln: kiln.reply.to_string(),
            peer: peer.reply.to_string(),
            signature: format!("state: {name}{detail}"),
        }
    };
    differ.map(difference).collect()
}
