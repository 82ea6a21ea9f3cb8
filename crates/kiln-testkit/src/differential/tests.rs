//! The driver against small servers inside this process, equal or with a planted fault.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use kiln_base::sync::Mutex;

use super::*;

type Data = Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>;

/// A server that knows SET, GET, KEYS and TYPE. `faulty`: it answers SET of a value with `1` in it
/// otherwise, or forgets it.
fn server(faulty: Option<&'static str>) -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let data = Data::default();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let data = Arc::clone(&data);
            thread::spawn(move || serve(stream, &data, faulty));
        }
    });
    Target::Address(address)
}

fn serve(mut stream: TcpStream, data: &Data, faulty: Option<&str>) {
    stream.set_nodelay(true).expect("it is connected");
    let (mut inbox, mut buf) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = stream.read(&mut buf) {
        inbox.extend_from_slice(&buf[..read]);
        while let Ok(Some((command, length))) = Reply::parse(&inbox) {
            inbox.drain(..length);
            let elements = command.as_elements().expect("commands are arrays");
            let words: Vec<_> =
                elements.iter().map(|word| word.as_bytes().expect("of strings").to_vec()).collect();
            let reply = answer(&words, &mut data.lock(), faulty);
            if reply.is_empty() || stream.write_all(&reply).is_err() {
                return;
            }
        }
    }
}

fn answer(
    words: &[Vec<u8>],
    data: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    faulty: Option<&str>,
) -> Vec<u8> {
    let bulk = |value: &[u8]| [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat();
    match (upper(&words[0]).as_str(), words) {
        ("SET", [_, key, value]) => {
            let faulty = faulty.filter(|_| value.contains(&b'1'));
            if faulty != Some("forgets") {
                data.insert(key.clone(), value.clone());
            }
            match faulty {
                Some("answers") => b"+KO\r\n".to_vec(),
                Some("hangs up") => Vec::new(),
                _ => b"+OK\r\n".to_vec(),
            }
        }
        ("GET", [_, key]) => data.get(key).map_or(b"$-1\r\n".to_vec(), |value| bulk(value)),
        ("FLUSHALL", _) => {
            data.clear();
            b"+OK\r\n".to_vec()
        }
        ("KEYS", _) => {
            let keys: Vec<_> = data.keys().map(|key| bulk(key)).collect();
            [format!("*{}\r\n", keys.len()).into_bytes(), keys.concat()].concat()
        }
        ("TYPE", _) => b"+string\r\n".to_vec(),
        _ => b"-ERR unknown\r\n".to_vec(),
    }
}

fn run_against(faulty: Option<&'static str>) -> (Summary, String) {
    let options = Options {
        kiln: server(faulty),
        peer: server(None),
        commands: 1_000,
        seed: 1,
        server_args: Vec::new(),
        families: vec![Family::Strings],
        protocols: vec![2],
        stop_after: 1,
        known_only: false,
    };
    let mut out = Vec::new();
    let summary = run(&options, &mut out).expect("the peer works");
    (summary, String::from_utf8(out).expect("reports are text"))
}

#[test]
fn equal_servers_do_not_differ() {
    let (summary, report) = run_against(None);
    assert_eq!((summary.commands, summary.differences.len(), report.as_str()), (1_000, 0, ""));
}

#[test]
fn a_wrong_reply_is_shrunk_to_its_command() {
    let (summary, report) = run_against(Some("answers"));
    assert_eq!(summary.differences.keys().collect::<Vec<_>>(), ["SET: +KO for +OK"]);
    let shrunk: Vec<_> =
        report.lines().skip_while(|line| !line.contains("shrunk to")).skip(1).collect();
    assert!(
        matches!(shrunk[..], [line] if line.trim_start().to_ascii_uppercase().starts_with("SET ")),
        "{report}"
    );
}

#[test]
fn a_wrong_state_is_shrunk_to_what_caused_it() {
    let options = Options {
        kiln: server(Some("forgets")),
        peer: server(None),
        commands: 100,
        seed: 1,
        server_args: Vec::new(),
        families: vec![Family::Strings],
        protocols: vec![2],
        stop_after: 1,
        known_only: false,
    };
    let mut pair = Pair::start(&options).expect("they run");
    let words = |line| script::split(line).expect("balanced");
    let step = |line| Step { session: 0, words: words(line), iterate: false };
    let steps = ["SET a 2", "SET b 1", "SET c 3", "GET a"].map(step);
    let (_, differences) = pair.replay(&steps, 2, true).expect("the peer works");
    assert_eq!(differences[0].signature, "state: KEYS");
    let shrunk = shrink::shrink(&mut pair, &steps, 2, &differences[0]).expect("the peer works");
    assert_eq!(shrunk, [step("SET b 1")]);
}

#[test]
fn a_lost_connection_is_a_difference() {
    let (summary, report) = run_against(Some("hangs up"));
    let kind = summary.differences.keys().next().expect("there is one");
    assert!(kind.starts_with("SET: connection lost"), "{kind}");
    assert!(report.contains("shrunk to:"));
}
