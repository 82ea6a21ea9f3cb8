//! Tests of the configuration as clients and owners of files see it. What is expected comes from
//! Redis 8.2.3, observed, and from the golden replies of group `config`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use proptest::prelude::{any, prop_assert_eq, proptest};

use super::parse::{self, CommandLine, load_text, parse_command_line, quote, split_words};
use super::value::{MaxmemoryPolicy, MemoryOrPercent, NotifyFlags};
use super::{
    Config, ConfigError, ConfigFiles, ConfigReader, ConfigStore, DIRECTIVES, Directive, LoadError,
    ServeOptions, rewrite,
};

/// Files in memory. The working directory is `/srv` until somebody changes it.
#[derive(Default)]
struct Files {
    files: RefCell<BTreeMap<PathBuf, Vec<u8>>>,
    stdin: Vec<u8>,
}

impl Files {
    fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| (absolute(path), text.as_bytes().to_vec()));
        Self { files: RefCell::new(files.collect()), stdin: Vec::new() }
    }

    fn text(&self, path: &str) -> String {
        String::from_utf8(self.files.borrow()[&absolute(path)].clone()).unwrap()
    }
}

fn absolute(path: impl AsRef<Path>) -> PathBuf {
    Path::new("/srv").join(path)
}

impl ConfigFiles for Files {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files
            .borrow()
            .get(&absolute(path))
            .cloned()
            .ok_or_else(|| io::Error::from_raw_os_error(2))
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        Ok(self.stdin.clone())
    }

    fn matching(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        let (before, after) = pattern.split_once('*').unwrap();
        let before = absolute(before).to_string_lossy().into_owned();
        let matches = |path: &&PathBuf| {
            let path = path.to_string_lossy();
            path.starts_with(&before) && path.ends_with(after)
        };
        Ok(self.files.borrow().keys().filter(matches).cloned().collect())
    }

    fn current_dir(&self) -> io::Result<PathBuf> {
        Ok(PathBuf::from("/srv"))
    }

    fn change_dir(&self, path: &Path) -> io::Result<PathBuf> {
        if path == Path::new("/nowhere") {
            return Err(io::Error::from_raw_os_error(2));
        }
        Ok(absolute(path))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.files.borrow_mut().insert(absolute(path), bytes.to_vec());
        Ok(())
    }
}

fn store() -> ConfigStore {
    ConfigStore::new(Config::default(), None)
}

/// Runs `CONFIG SET` with the words of `command`, in which `|` separates words; a client's reply.
fn set(store: &ConfigStore, command: &str) -> String {
    let words: Vec<&[u8]> = command.split('|').map(str::as_bytes).collect();
    let pairs: Vec<(&[u8], &[u8])> = words.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    match store.set(&pairs, true, |_, _, _| Ok(())) {
        Ok(_) => "OK".to_owned(),
        Err(error) => format!("ERR {error}"),
    }
}

/// Runs `CONFIG GET` with the words of `patterns`; names and values with spaces between.
fn get(store: &ConfigStore, patterns: &str) -> String {
    let patterns: Vec<&[u8]> = patterns.split(' ').map(str::as_bytes).collect();
    let found = store.get(&patterns);
    found.into_iter().map(|(name, text)| format!("{name} {text}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_name_is_there_once() {
    let mut names: Vec<&str> = DIRECTIVES.iter().flat_map(Directive::names).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for row in DIRECTIVES {
        assert!(row.names().all(|name| name == name.to_ascii_lowercase()), "{}", row.name);
        assert!(row.doc.ends_with('.'), "{}", row.name);
    }
}

#[test]
fn defaults_are_those_of_redis() {
    let chosen = [("bind", "127.0.0.1 -::1")];
    let store = store();
    let mut redis_names = Vec::new();
    for line in
        include_str!("defaults-redis-8.2.3.txt").lines().filter(|line| !line.starts_with('#'))
    {
        let (name, value) = line.split_once(' ').unwrap();
        let want = chosen.iter().find(|row| row.0 == name).map_or(value, |row| row.1);
        assert_eq!(get(&store, name), format!("{name} {want}"));
        redis_names.push(name);
    }
    let is_new = |name: &&str| !redis_names.contains(name);
    let valkey = DIRECTIVES.iter().filter(|row| row.doc.starts_with("Valkey: "));
    let mut more: Vec<&str> = valkey.map(|row| row.name).collect();
    more.extend(["threads", "primaryauth", "primaryuser", "commandlog-execution-slower-than"]);
    more.push("commandlog-slow-execution-max-len");
    more.sort_unstable();
    let all = store.get(&[b"*"]);
    let mut ours: Vec<&str> = all.iter().map(|row| row.0.as_str()).filter(is_new).collect();
    ours.sort_unstable();
    assert_eq!(ours, more, "what Redis does not know");
    assert_eq!(all.len(), redis_names.len() + more.len());
}

/// What `CONFIG GET` shows, `CONFIG SET` and a file take and show again.
#[test]
fn every_default_can_be_set_again() {
    let default = Config::default();
    for row in DIRECTIVES {
        let text = row.text(&default);
        let words: Vec<&str> = match row.kind.takes_words() {
            true if text.is_empty() => Vec::new(),
            true => text.split(' ').collect(),
            false => vec![&text],
        };
        let mut config = default.clone();
        if row.name != "replicaof" {
            row.assign(&mut config, &words, false).unwrap();
        }
        assert_eq!(config, default, "{}", row.name);

        for (line, _) in (row.get)(&default).lines(&row.kind, true) {
            let config = load_text(format!("{} {line}", row.name).as_bytes()).unwrap();
            assert_eq!(row.text(&config), text.split(" 300 ").next().unwrap(), "{}", row.name);
            if row.name == "save" {
                break;
            }
        }
    }
}

#[test]
fn get_takes_names_and_patterns() {
    let store = store();
    for (patterns, want) in [
        ("maxmemory", "maxmemory 0"),
        ("MAXMEMORY", "MAXMEMORY 0"),
        ("MAXMEMORY maxmemory", "MAXMEMORY 0"),
        ("maxmemory maxmem?ry", "maxmemory 0"),
        ("maxmemory-p*", "maxmemory-policy noeviction"),
        ("MAXMEMORY-P*", "maxmemory-policy noeviction"),
        ("*laveof", "slaveof "),
        ("hash-max-ziplist-entries", "hash-max-ziplist-entries 512"),
        ("nosuchparam", ""),
        ("watchdog-perio[d]", ""),
        ("maxmemory-[o-q]*", "maxmemory-policy noeviction"),
        ("watchdog-period", "watchdog-period 0"),
        ("rename-command user include", ""),
        (
            "client-output-buffer-limit",
            "client-output-buffer-limit \
             normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        ),
    ] {
        assert_eq!(get(&store, patterns), want, "{patterns}");
    }
}

#[test]
fn set_is_shown_as_redis_shows_it() {
    for (name, value, want) in [
        ("maxmemory", "100mb", "104857600"),
        ("maxmemory", "1k", "1000"),
        ("maxmemory", "1kb", "1024"),
        ("maxmemory", "", "0"),
        ("maxmemory-policy", "ALLKEYS-LRU", "allkeys-lru"),
        ("maxmemory-clients", "5%", "5%"),
        ("maxmemory-clients", "0%", "0"),
        ("appendonly", "YES", "yes"),
        ("hz", "0", "1"),
        ("hz", "1000", "500"),
        ("repl-backlog-size", "1", "16384"),
        ("bind", "", ""),
        ("bind", "127.0.0.1", "127.0.0.1"),
        ("save", "60 1000 10 1", "60 1000 10 1"),
        ("save", "1 0", "1 0"),
        ("save", "", ""),
        ("notify-keyspace-events", "KEA", "AKE"),
        ("notify-keyspace-events", "Kgxe", "gxeK"),
        ("notify-keyspace-events", "Elshz$tdmn", "$lshztdnEm"),
        ("notify-keyspace-events", "KEAmn", "AKEm"),
        ("notify-keyspace-events", "K$lshzxetdmn", "$lshzxetdnKm"),
        ("notify-keyspace-events", "KEAocnm", "AKEm"),
        ("notify-keyspace-events", "cognK", "gnocK"),
        ("watchdog-period", "1", "200"),
        ("proto-max-bulk-len", "10gb", "4294967295"),
        ("client-query-buffer-limit", "9223372036854775807", "4294967295"),
        ("proc-title-template", "{port}}a{{b", "{port}}a{{b"),
        ("cluster-announce-human-nodename", "a b/c", "a b/c"),
        ("locale-collate", "C", "C"),
        ("oom-score-adj-values", "3 2 1", "3 2 1"),
        ("latency-tracking-info-percentiles", "50 99.99", "50 99.99"),
        ("latency-tracking-info-percentiles", "0 100 12.345678901234", "0 100 12.345679"),
        ("latency-tracking-info-percentiles", "1e1 1.0 50.50 0.001", "10 1 50.5 0.001"),
        ("latency-tracking-info-percentiles", "", ""),
        ("shutdown-on-sigint", "save now", "save now"),
        ("shutdown-on-sigint", "default save", "save"),
        ("shutdown-on-sigint", "DEFAULT", "default"),
        ("lua-time-limit", "7", "7"),
        ("primaryauth", "x y", "x y"),
        ("proc-title-template", "{title} x", "{title} x"),
        ("cluster-announce-hostname", "ok.foo", "ok.foo"),
        (
            "client-output-buffer-limit",
            "normal 1 2 3 slave 1mb 2mb 60",
            "normal 1 2 3 slave 1048576 2097152 60 pubsub 33554432 8388608 60",
        ),
        (
            "client-output-buffer-limit",
            "normal 1 2 3 normal 4 5 6",
            "normal 4 5 6 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        ),
        (
            "client-output-buffer-limit",
            "",
            "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        ),
    ] {
        let store = store();
        assert_eq!(set(&store, &format!("{name}|{value}")), "OK", "{name} {value}");
        assert_eq!(get(&store, name), format!("{name} {want}"));
    }
}

#[test]
fn refusals_have_the_texts_of_redis_and_change_nothing() {
    let between =
        |min: &str, max: &str| format!("argument must be between {min} and {max} inclusive");
    let i64_max = "9223372036854775807";
    let integer = "argument couldn't be parsed into an integer".to_owned();
    let memory = "argument must be a memory value".to_owned();
    let unsigned = "argument must be greater or equal to 0".to_owned();
    let text = str::to_owned;
    for (name, value, reason) in [
        ("timeout", "abc", integer.clone()),
        ("timeout", "05", integer.clone()),
        ("timeout", "+5", integer.clone()),
        ("timeout", "9223372036854775808", integer.clone()),
        ("timeout", "-1", between("0", "2147483647")),
        ("maxmemory-samples", "0", between("1", "64")),
        ("slowlog-max-len", "-1", between("0", i64_max)),
        ("hash-max-listpack-entries", "-1", unsigned.clone()),
        ("hash-max-ziplist-entries", "abc", integer),
        ("maxclients", "-1", unsigned.clone()),
        ("maxclients", "0", between("1", "4294967295")),
        ("list-max-listpack-size", "2147483648", between("-2147483648", "2147483647")),
        ("maxmemory", "abc", memory.clone()),
        ("maxmemory", "-1", memory.clone()),
        ("maxmemory", "1.5mb", memory),
        ("maxmemory", "18446744073709551615", unsigned),
        ("repl-backlog-size", "0", between("1", i64_max)),
        ("repl-backlog-size", "18446744073709551615", between("1", i64_max)),
        ("maxmemory-clients", "101%", text("percentage argument must be less or equal to 100")),
        ("maxmemory-clients", "-5%", text("argument must be a memory or percent value")),
        ("appendonly", "maybe", text("argument must be 'yes' or 'no'")),
        (
            "maxmemory-policy",
            "bogus",
            text(
                "argument(s) must be one of the following: volatile-lru, volatile-lfu, \
                 volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, \
                 noeviction",
            ),
        ),
        (
            "shutdown-on-sigint",
            "",
            text("argument(s) must be one of the following: default, save, nosave, now, force"),
        ),
        (
            "shutdown-on-sigint",
            "now save nosave",
            text("shutdown options SAVE and NOSAVE can't be used simultaneously"),
        ),
        ("databases", "20", text("can't set immutable config")),
        ("replicaof", "no one", text("can't set immutable config")),
        ("dbfilename", "x", text("can't set protected config")),
        ("dir", "/tmp", text("can't set protected config")),
        (
            "notify-keyspace-events",
            "Q",
            text("Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
        ),
        ("save", "abc", text("Invalid save parameters")),
        ("save", "60", text("Invalid save parameters")),
        ("save", "0 1", text("Invalid save parameters")),
        ("save", "1 -1", text("Invalid save parameters")),
        ("save", " 60   1000 ", text("Invalid save parameters")),
        ("save", "\"\"", text("Invalid save parameters")),
        ("bind", "a b c d e f g h i j k l m n o p q", text("Too many bind addresses specified.")),
        (
            "client-output-buffer-limit",
            "bogus",
            text("Wrong number of arguments in buffer limit configuration."),
        ),
        (
            "client-output-buffer-limit",
            "master 1 2 3",
            text("Invalid client class specified in buffer limit configuration."),
        ),
        (
            "client-output-buffer-limit",
            "normal 1 2 -3",
            text("Error in hard, soft or soft_seconds setting in buffer limit configuration."),
        ),
        ("oom-score-adj-values", "1 2 3 4", text("wrong number of arguments")),
        (
            "oom-score-adj-values",
            "1 2 2001",
            text("Invalid oom-score-adj-values, elements must be between -2000 and 2000."),
        ),
        (
            "latency-tracking-info-percentiles",
            "50 x",
            text("Invalid latency-tracking-info-percentiles parameters"),
        ),
        (
            "latency-tracking-info-percentiles",
            "-1 50",
            text("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"),
        ),
        (
            "proc-title-template",
            "{bad}",
            text("template format is invalid or contains unknown variables"),
        ),
        (
            "proc-title-template",
            "{title",
            text("template format is invalid or contains unknown variables"),
        ),
        ("locale-collate", "xx", text("Invalid locale name")),
        (
            "cluster-announce-human-nodename",
            "a!",
            text("Announced human node name contained invalid character"),
        ),
        (
            "cluster-announce-hostname",
            "a b!",
            text("Hostnames may only contain alphanumeric characters, hyphens or dots"),
        ),
    ] {
        let store = store();
        let want =
            format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}");
        assert_eq!(set(&store, &format!("maxmemory|5|{name}|{value}")), {
            // A pair before it makes no difference, unless it is the same directive.
            if name == "maxmemory" {
                want.replace(&reason, "duplicate parameter")
            } else {
                want.clone()
            }
        });
        assert_eq!(set(&store, &format!("{name}|{value}")), want);
        assert_eq!(*store.current(), Config::default(), "{name} {value}");
        assert_eq!(store.generation(), 0);
    }
}

#[test]
fn set_checks_all_names_before_any_value() {
    let store = store();
    let unknown = "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'";
    let failed = |name: &str, reason: &str| {
        format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
    };
    for (command, want) in [
        ("nosuch|1", unknown.to_owned()),
        ("TIMEOUT|abc|nosuch|1", unknown.to_owned()),
        ("timeout|1|timeout|abc", failed("timeout", "duplicate parameter")),
        ("timeout|1|Timeout|2", failed("timeout", "duplicate parameter")),
        ("port|0|port|1", failed("port", "duplicate parameter")),
        ("databases|1|nosuch|3", failed("databases", "can't set immutable config")),
        ("timeout|abc|databases|1", failed("databases", "can't set immutable config")),
        ("TIMEOUT|abc", failed("timeout", "argument couldn't be parsed into an integer")),
        ("timeout|1|hz|abc", failed("hz", "argument couldn't be parsed into an integer")),
        ("rename-command|a b", unknown.replace("nosuch", "rename-command")),
    ] {
        assert_eq!(set(&store, command), want, "{command}");
    }
    assert_eq!(*store.current(), Config::default());
    assert_eq!(set(&store, "hash-max-ziplist-entries|1|hash-max-listpack-entries|2"), "OK");
    assert_eq!(store.current().hash_max_listpack_entries, 2);
}

#[test]
fn protected_directives_follow_their_switch() {
    let pairs: [(&[u8], &[u8]); 1] = [(b"dbfilename", b"x.rdb")];
    for (switch, local, allowed) in
        [("no", true, false), ("local", true, true), ("local", false, false), ("yes", false, true)]
    {
        let config = load_text(format!("enable-protected-configs {switch}").as_bytes()).unwrap();
        let store = ConfigStore::new(config, None);
        assert_eq!(store.set(&pairs, local, |_, _, _| Ok(())).is_ok(), allowed, "{switch} {local}");
    }
}

#[test]
fn the_server_can_refuse_or_adjust_a_change() {
    let store = store();
    let mut reader = ConfigReader::new(&store);
    let pairs: [(&[u8], &[u8]); 2] = [(b"TIMEOUT", b"5"), (b"port", b"7000")];
    let refusal = ConfigError::Refused { name: "port", reason: "Unable to listen".into() };
    let refused = store.set(&pairs, true, |old, new, names| {
        assert_eq!((old.port, new.port, names), (6379, 7000, &["timeout", "port"][..]));
        Err(refusal.clone())
    });
    assert_eq!(refused.unwrap_err(), refusal);
    assert!(!reader.refresh(&store));

    let changed = store
        .set(&pairs, true, |_, new, _| {
            new.port = 7001;
            Ok(())
        })
        .unwrap();
    assert_eq!((changed.config.timeout, changed.config.port), (5, 7001));
    assert_eq!(changed.names, ["timeout", "port"]);
    assert_eq!(reader.config().port, 6379);
    assert!(reader.refresh(&store));
    assert_eq!(reader.config().port, 7001);
    assert!(!reader.refresh(&store));
}

#[test]
fn values_have_types() {
    let config = load_text(
        b"maxmemory-policy AllKeys-LFU\nmaxmemory-clients 5%\nnotify-keyspace-events Kg\n\
          unixsocketperm 700\nsave 1 2\nsave 3 4\nbind 10.0.0.1 -::1\nreplicaof 10.0.0.2 6380\n\
          rename-command FLUSHALL \"\"\nuser alice on nopass ~* +@all\nthreads 3\n",
    )
    .unwrap();
    assert_eq!(config.maxmemory_policy, MaxmemoryPolicy::AllkeysLfu);
    assert_eq!(config.maxmemory_clients, MemoryOrPercent::Percent(5));
    assert!(config.notify_keyspace_events.contains(NotifyFlags::KEYSPACE));
    assert!(!config.notify_keyspace_events.contains(NotifyFlags::KEYEVENT));
    assert_eq!(config.unixsocketperm, 0o700);
    assert_eq!(config.save.0.len(), 2);
    assert_eq!(config.bind.0, ["10.0.0.1", "-::1"]);
    assert_eq!(config.replicaof.0, Some(("10.0.0.2".to_owned(), 6380)));
    assert_eq!(config.rename_commands, [("FLUSHALL".to_owned(), String::new())]);
    assert_eq!(config.users, [["alice", "on", "nopass", "~*", "+@all"]]);
    assert_eq!(config.threads, 3);
}

#[test]
fn a_wrong_line_is_named() {
    for (text, number, line, reason) in [
        ("timeout x", 1, "timeout x", "argument couldn't be parsed into an integer"),
        ("# a\n\n  TimeOut 5 # c  \n", 3, "TimeOut 5 # c", "wrong number of arguments"),
        ("timeout", 1, "timeout", "wrong number of arguments"),
        ("nosuch 1", 1, "nosuch 1", "Bad directive or wrong number of arguments"),
        ("rename-command a", 1, "rename-command a", "Bad directive or wrong number of arguments"),
        ("timeout \"5", 1, "timeout \"5", "Unbalanced quotes in configuration line"),
        ("timeout \"5\"x", 1, "timeout \"5\"x", "Unbalanced quotes in configuration line"),
        ("databases 0", 1, "databases 0", "argument must be between 1 and 2147483647 inclusive"),
        (
            "unixsocketperm 9",
            1,
            "unixsocketperm 9",
            "argument couldn't be parsed as an octal number",
        ),
        (
            "unixsocketperm 1777",
            1,
            "unixsocketperm 1777",
            "argument must be between 0 and 777 inclusive",
        ),
        ("socket-mark-id -1", 1, "socket-mark-id -1", "argument must be greater or equal to 0"),
        ("replicaof a", 1, "replicaof a", "wrong number of arguments"),
        ("replicaof a 70000", 1, "replicaof a 70000", "Invalid master port"),
        ("appenddirname \"\"", 1, "appenddirname \"\"", "appenddirname can't be empty"),
        (
            "appenddirname a/b",
            1,
            "appenddirname a/b",
            "appenddirname can't be a path, just a dirname",
        ),
        (
            "appendfilename a/b",
            1,
            "appendfilename a/b",
            "appendfilename can't be a path, just a filename",
        ),
        ("dbfilename a/b", 1, "dbfilename a/b", "dbfilename can't be a path, just a filename"),
        ("loadmodule x.so", 1, "loadmodule x.so", "Kiln loads no modules"),
    ] {
        let want = LoadError::Line { number, line: line.to_owned(), reason: reason.into() };
        assert_eq!(load_text(text.as_bytes()), Err(want), "{text:?}");
    }
    let error = load_text(b"port a").unwrap_err().to_string();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        error,
        format!(
            "\n*** FATAL CONFIG FILE ERROR (Kiln {version}) ***\n\
             Reading the configuration file, at line 1\n>>> 'port a'\n\
             argument couldn't be parsed into an integer"
        )
    );
}

#[test]
fn directives_that_redis_ignores_are_ignored() {
    let text = b"io-threads-do-reads yes\nlist-max-ziplist-entries 3\nLUA-replicate-commands no";
    assert_eq!(load_text(text), Ok(Config::default()));
}

/// The options of a command line in which `|` separates the words.
fn options(command: &str) -> ServeOptions {
    let args: Vec<String> = match command {
        "" => Vec::new(),
        _ => command.split('|').map(str::to_owned).collect(),
    };
    match parse_command_line(&args) {
        CommandLine::Serve(options) => options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_line_becomes_lines() {
    for (command, file, stdin, lines) in [
        ("", None, false, ""),
        ("a.conf", Some("a.conf"), false, ""),
        ("-", None, true, ""),
        ("a.conf|-", Some("a.conf"), true, ""),
        ("a.conf|--timeout|5|-", Some("a.conf"), true, "timeout \"5\" "),
        ("--port|7000|--save|60|1000", None, false, "port \"7000\" \nsave \"60\" \"1000\" "),
        ("--port 7000|--timeout|5", None, false, "port 7000 \ntimeout \"5\" "),
        ("--save|--appendonly|no", None, false, "save \"\"\nappendonly \"no\" "),
        ("--appendonly|no|--save", None, false, "appendonly \"no\" \nsave \"\""),
        ("--save||--port|7", None, false, "save \"\" \nport \"7\" "),
        ("--requirepass|--foo|--port|7", None, false, "requirepass \"--foo\" \nport \"7\" "),
        ("--port|--port|7", None, false, "port \"--port\" \"7\" "),
        ("a.conf|timeout|5", Some("a.conf"), false, "\"timeout\" \"5\" "),
    ] {
        let want = ServeOptions { file: file.map(PathBuf::from), stdin, lines: lines.to_owned() };
        assert_eq!(options(command), want, "{command}");
    }
    let line = |word: &str| parse_command_line(&[word.to_owned()]);
    assert_eq!((line("-v"), line("--version")), (CommandLine::Version, CommandLine::Version));
    assert_eq!((line("-h"), line("--help")), (CommandLine::Help, CommandLine::Help));
    assert_eq!(line("--test-memory"), CommandLine::Unsupported("--test-memory".to_owned()));
}

#[test]
fn options_come_after_the_file_and_count_on_its_lines() {
    let files = Files::of(&[
        ("a.conf", "timeout 7\nsave 60 1000\ninclude conf.d/*.conf\ninclude none/*\ndir data"),
        ("conf.d/1.conf", "maxmemory 1mb\ninclude b.conf"),
        ("conf.d/2.conf", "maxmemory 2mb"),
        ("b.conf", "tcp-keepalive 1"),
    ]);
    let store = ConfigStore::load(&options("a.conf|--timeout|5|--save|7|8"), &files).unwrap();
    let config = store.current();
    assert_eq!((config.timeout, config.maxmemory, config.tcp_keepalive), (5, 2 << 20, 1));
    assert_eq!(get(&store, "save dir"), "save 60 1000 7 8 dir /srv/data");
    assert_eq!(store.file(), Some(Path::new("/srv/a.conf")));

    let words_in_one = options("--save|60 1000 5 6|--bind|::1 ::2|--shutdown-on-sigint|save now");
    let words_in_one = ConfigStore::load(&words_in_one, &files).unwrap();
    assert_eq!(
        get(&words_in_one, "save bind shutdown-on-sigint"),
        "save 60 1000 5 6 bind ::1 ::2 shutdown-on-sigint save now"
    );

    let none = ConfigStore::load(&options(""), &files).unwrap();
    assert_eq!((get(&none, "dir"), none.file()), ("dir /srv".to_owned(), None));
    assert_eq!(get(&none, "save"), "save 3600 1 300 100 60 10000");

    let load = |command: &str| parse::load(&options(command), &files).unwrap_err();
    let line = |number, line: &str, reason: &str| LoadError::Line {
        number,
        line: line.to_owned(),
        reason: reason.to_owned().into(),
    };
    assert_eq!(
        load("--port|x"),
        line(2, "port \"x\"", "argument couldn't be parsed into an integer")
    );
    assert_eq!(load("--port=7000"), {
        line(2, "port=7000", "Bad directive or wrong number of arguments")
    });
    assert_eq!(load("--dir|/nowhere"), line(2, "dir \"/nowhere\"", "No such file or directory"));
    assert_eq!(
        load("missing.conf").to_string(),
        "Fatal error, can't open config file 'missing.conf': No such file or directory"
    );
    assert_eq!(
        load("--include|missing.conf").to_string(),
        "Fatal error, can't open config file 'missing.conf': No such file or directory"
    );
}

#[test]
fn standard_input_and_endless_includes() {
    let mut files = Files::of(&[("a.conf", "include a.conf")]);
    files.stdin = b"timeout 44".to_vec();
    assert_eq!(parse::load(&options("-|--port|7"), &files).unwrap().timeout, 44);
    let error = parse::load(&options("a.conf"), &files).unwrap_err();
    assert!(error.to_string().ends_with("Too many files include each other"));
}

#[test]
fn words_and_quotes() {
    for (line, want) in [
        ("", Some(vec![])),
        ("  a   b\t", Some(vec!["a", "b"])),
        ("a \"b c\" 'd e'", Some(vec!["a", "b c", "d e"])),
        (r#""a\"b\\\x41\n" '\'\n'"#, Some(vec!["a\"b\\A\n", "'\\n"])),
        (r#""\xzz\q""#, Some(vec!["xzzq"])),
        ("a\"b c\"", Some(vec!["ab c"])),
        ("\"\" ''", Some(vec!["", ""])),
        ("\"a", None),
        ("'a", None),
        ("\"a\"b", None),
        ("'a'b", None),
        ("\"a\\", None),
    ] {
        let want = want.map(|words| {
            words.into_iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>()
        });
        assert_eq!(split_words(line.as_bytes()), want, "{line}");
    }
}

proptest! {
    #[test]
    fn quoted_text_comes_back(bytes: Vec<u8>) {
        prop_assert_eq!(split_words(quote(&bytes).as_bytes()), Some(vec![bytes]));
    }

    #[test]
    fn no_text_panics(text: Vec<u8>, row in 0..DIRECTIVES.len(), words in any::<Vec<String>>()) {
        let _ = load_text(&text);
        let mut config = Config::default();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let row = &DIRECTIVES[row];
        if row.assign(&mut config, &words, false).is_err() {
            assert_eq!(config, Config::default());
        }
    }

    #[test]
    fn a_rewritten_file_gives_the_same_configuration(
        numbers in proptest::collection::vec((0..DIRECTIVES.len(), "[0-9a-z.%]{0,5}"), 0..20),
    ) {
        let mut config = Config::default();
        for (row, text) in &numbers {
            let _ = DIRECTIVES[*row].assign(&mut config, &[text], false);
        }
        let text = rewrite::rewrite("", &config, &[]);
        prop_assert_eq!(load_text(text.as_bytes()), Ok(config.clone()));
        prop_assert_eq!(rewrite::rewrite(&text, &config, &[]), text);
    }
}

#[test]
fn rewrite_keeps_what_its_owner_wrote() {
    let old = "\
# My config
port 7466
  TIMEOUT   0
# timeouts
hash-max-ziplist-entries 512
save 900 1
save 300 10
maxmemory 100mb
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit pubsub 32mb 8mb 60
include inc.conf

#another \"comment\"
slowlog-max-len 128
slowlog-max-len 129
requirepass \"foo bar\"
rename-command FLUSHALL \"\"
user alice on nopass
masteruser \"\"
notify-keyspace-events KEA
list-max-ziplist-entries 3
";
    let files = Files::of(&[("a.conf", old), ("inc.conf", "tcp-keepalive 60")]);
    let store = ConfigStore::load(&options("a.conf|--hz|20"), &files).unwrap();
    store.rewrite(&files, &["user alice on nopass".to_owned()]).unwrap();
    assert_eq!(
        files.text("a.conf"),
        "\
# My config
port 7466
timeout 0
# timeouts
hash-max-listpack-entries 512
save 900 1
save 300 10
maxmemory 100mb
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit replica 256mb 64mb 60
include inc.conf

#another \"comment\"
slowlog-max-len 129

requirepass \"foo bar\"
rename-command FLUSHALL \"\"
user alice on nopass
masteruser \"\"
notify-keyspace-events \"AKE\"
# ??? list-max-ziplist-entries 3

# Generated by CONFIG REWRITE
tcp-keepalive 60
dir \"/srv\"
hz 20
"
    );

    assert_eq!(set(&store, "save||maxmemory|0|slowlog-max-len|7|requirepass|a\"b c"), "OK");
    assert_eq!(set(&store, "client-output-buffer-limit|pubsub 1 2 3|loglevel|debug"), "OK");
    store.rewrite(&files, &["user alice on nopass".to_owned()]).unwrap();
    assert_eq!(
        files.text("a.conf"),
        "\
# My config
port 7466
timeout 0
# timeouts
hash-max-listpack-entries 512
save \"\"

maxmemory 0
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit replica 256mb 64mb 60
include inc.conf

#another \"comment\"
slowlog-max-len 7

requirepass \"a\\\"b c\"
rename-command FLUSHALL \"\"
user alice on nopass
masteruser \"\"
notify-keyspace-events \"AKE\"
# ??? list-max-ziplist-entries 3

# Generated by CONFIG REWRITE
tcp-keepalive 60
dir \"/srv\"
hz 20
loglevel debug
client-output-buffer-limit pubsub 1 2 3
"
    );
    let again = ConfigStore::load(&options("a.conf"), &files).unwrap();
    assert_eq!(again.current(), store.current());
}

#[test]
fn rewrite_needs_a_file_and_makes_a_missing_one() {
    let files = Files::default();
    let none = store().rewrite(&files, &[]).unwrap_err();
    assert_eq!(none.to_string(), "The server is running without a config file");

    let store = ConfigStore::new(Config::default(), Some(absolute("a.conf")));
    store.update(|config| config.replicaof.0 = Some(("primary".to_owned(), 6379)));
    store.rewrite(&files, &[]).unwrap();
    let text = files.text("a.conf");
    assert_eq!(text, "\n# Generated by CONFIG REWRITE\nreplicaof primary 6379\n");
}
