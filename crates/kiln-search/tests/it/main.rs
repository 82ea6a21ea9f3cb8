//! Many clients on the same few indexes at once.

use kiln_testkit::generate::Random;
use kiln_testkit::in_process::TestServer;
use kiln_testkit::reply::Reply;

const CLIENTS: usize = 4;
const COMMANDS: usize = 3_000;
const DIM: usize = 8;
const ELEMENTS: usize = 60;

fn ask(client: &mut TestServer, line: &str) -> Reply {
    let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    client.reply(&words)
}

/// `DIM` components, none of them zero.
fn vector(random: &mut Random) -> String {
    let mut components = (0..DIM).map(|_| (random.between(-99, 99) * 2 + 1).to_string());
    let first = components.next().expect("there are some");
    components.fold(first, |words, component| words + " " + &component)
}

/// A command on one of two sets, or on an index that comes and goes.
fn command(random: &mut Random) -> String {
    let (key, element) = (random.below(2), random.below(ELEMENTS));
    let vector = vector(random);
    match random.below(24) {
        0..=7 => format!("VADD v{key} VALUES {DIM} {vector} e{element}"),
        8 => format!("VADD v{key} VALUES {DIM} {vector} e{element} SETATTR {{\"n\":{element}}}"),
        9..=11 => format!("VREM v{key} e{element}"),
        12 => format!("VSETATTR v{key} e{element} {{\"n\":1}}"),
        13..=15 => format!("VSIM v{key} VALUES {DIM} {vector} COUNT 5 FILTER .n>=1"),
        16 => format!("VLINKS v{key} e{element}"),
        17 => format!("DEL v{key}"),
        18 => "RENAME v0 v1".to_owned(),
        19 => format!("VSIM.CREATEINDEX i {DIM}"),
        20 => format!("VSIM.SET i e{element} {vector}"),
        21 => format!("VSIM.SEARCH i 5 {vector}"),
        22 => "VSIM.DROPINDEX i".to_owned(),
        _ => "FLUSHALL".to_owned(),
    }
}

/// Commands of one transaction see each other's work and nobody else's.
fn transaction(client: &mut TestServer, random: &mut Random) {
    let (key, element) = (random.below(2), random.below(ELEMENTS));
    let vector = vector(random);
    for line in [
        "MULTI".to_owned(),
        format!("VADD v{key} VALUES {DIM} {vector} e{element}"),
        format!("VSIM v{key} VALUES {DIM} {vector} COUNT 1 TRUTH"),
        format!("VREM v{key} e{element}"),
        format!("VISMEMBER v{key} e{element}"),
    ] {
        assert!(!ask(client, &line).is_error(), "{line}");
    }
    let Reply::Array(replies) = ask(client, "EXEC") else { panic!("EXEC gives an array") };
    let nearest = Reply::Bulk(format!("e{element}").into_bytes());
    assert_eq!(replies[1], Reply::Array(vec![nearest]));
    assert_eq!(replies[2..], [Reply::Integer(1), Reply::Integer(0)]);
}

#[test]
fn clients_share_indexes_without_losing_an_element() {
    let mut clients = TestServer::several(&kiln_search::families(), CLIENTS);
    std::thread::scope(|scope| {
        for (seed, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                let mut random = Random::new(seed as u64);
                for _ in 0..COMMANDS {
                    if random.chance(3) {
                        transaction(client, &mut random);
                        continue;
                    }
                    let line = command(&mut random);
                    let reply = ask(client, &line);
                    let text = reply.to_string();
                    let expected = ["no such key", "index not found", "already exists"];
                    let fine = !reply.is_error() || expected.iter().any(|fine| text.contains(fine));
                    assert!(fine, "{line}: {text}");
                }
            });
        }
    });
    let client = &mut clients[0];
    for key in ["v0", "v1"] {
        let Reply::Array(names) = ask(client, &format!("VRANGE {key} - +")) else {
            panic!("VRANGE gives an array")
        };
        assert_eq!(ask(client, &format!("VCARD {key}")), Reply::Integer(names.len() as i64));
        assert_eq!(
            ask(client, &format!("EXISTS {key}")),
            Reply::Integer(i64::from(!names.is_empty()))
        );
        for name in names {
            let text = String::from_utf8_lossy(name.as_bytes().expect("a bulk string"));
            let found = ask(client, &format!("VSIM {key} ELE {text} COUNT 1"));
            assert_eq!(found, Reply::Array(vec![name.clone()]));
        }
    }
}
