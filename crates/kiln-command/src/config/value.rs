//! The types that directives hold, and how each reads and shows itself.
//!
//! A field of [`Config`](super::Config) is a [`Setting`]: it takes the words after the directive's
//! name and gives back the text of `CONFIG GET`. What a type cannot know (ranges, units, checks on
//! names) stands in the directive's [`Kind`]. The texts of refusals are Redis's.
//!
//! Source: Redis 8.2.3, observed through `CONFIG SET` and its command line.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::table::Kind;

/// Why a value was refused: the text after the dash in `CONFIG SET failed (...) - `.
pub type Reason = Cow<'static, str>;

/// What a field of the configuration can do for the generic commands.
pub trait Setting {
    /// Takes `words` as the new value, or leaves the old one and says why. Kinds of one word get
    /// exactly one. With `append`, a directive that may be repeated adds to what it has.
    fn assign(&mut self, kind: &Kind, words: &[&str], append: bool) -> Result<(), Reason>;

    /// The value as `CONFIG GET` shows it.
    fn text(&self, kind: &Kind) -> String;

    /// The value as the lines of a configuration file show it, each without the name; `true` marks
    /// a line that differs from the default and so has to be written. `changed` says whether the
    /// value as a whole differs.
    fn lines(&self, kind: &Kind, changed: bool) -> Vec<(String, bool)> {
        vec![(kind.file_text(&self.text(kind)), changed)]
    }
}

/// Reads a memory size: digits and a unit of `b`, `k`, `kb`, `m`, `mb`, `g` or `gb`, in any case.
///
/// No digits count as 0, as in Redis. Sizes beyond `u64` saturate, to be refused by the range.
/// `None` if it is not a size.
pub fn parse_memory(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(unit_at);
    let unit_bytes = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    // All that can go wrong with a string of digits is that it is empty or too long.
    let count = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(u64::MAX) };
    Some(count.saturating_mul(unit_bytes))
}

/// A memory size in the largest unit that divides it, as `CONFIG REWRITE` writes it.
pub fn format_memory(bytes: u64) -> String {
    for (unit, shift) in [("gb", 30), ("mb", 20), ("kb", 10)] {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

impl Setting for bool {
    fn assign(&mut self, _: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
        *self = if words[0].eq_ignore_ascii_case("yes") {
            true
        } else if words[0].eq_ignore_ascii_case("no") {
            false
        } else {
            return Err("argument must be 'yes' or 'no'".into());
        };
        Ok(())
    }

    fn text(&self, _: &Kind) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

/// The kind bounds the number, so that it fits the field; a row where it did not would be a bug.
macro_rules! number_settings {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn assign(&mut self, kind: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
                let number = kind.parse_number(words[0])?;
                *self = Self::try_from(number).expect("the bounds of the kind fit its field");
                Ok(())
            }

            fn text(&self, kind: &Kind) -> String {
                match kind {
                    Kind::Octal => format!("{self:o}"),
                    _ => self.to_string(),
                }
            }
        }
    )*};
}
number_settings!(i32, i64, u16, u32, u64);

impl Setting for String {
    fn assign(&mut self, kind: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
        if let Kind::CheckedText(check) = kind {
            check(words[0])?;
        }
        words[0].clone_into(self);
        Ok(())
    }

    fn text(&self, _: &Kind) -> String {
        self.clone()
    }
}

/// A number of bytes, or a share of `maxmemory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOrPercent {
    /// Bytes; 0 means no limit.
    Bytes(u64),
    /// Hundredths of `maxmemory`, 1 to 100.
    Percent(u8),
}

impl Setting for MemoryOrPercent {
    fn assign(&mut self, _: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
        let too_large = || Reason::from("percentage argument must be less or equal to 100");
        let not_a_size = || Reason::from("argument must be a memory or percent value");
        *self = if let Some(digits) = words[0].strip_suffix('%') {
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(not_a_size());
            }
            match digits.parse::<u64>() {
                Ok(0) => Self::Bytes(0),
                Ok(percent @ 1..=100) => Self::Percent(percent as u8),
                _ => return Err(too_large()),
            }
        } else {
            match parse_memory(words[0]).ok_or_else(not_a_size)? {
                // Redis keeps percentages as negative sizes, hence this text for sizes too large.
                bytes if bytes > i64::MAX as u64 => return Err(too_large()),
                bytes => Self::Bytes(bytes),
            }
        };
        Ok(())
    }

    fn text(&self, _: &Kind) -> String {
        match self {
            Self::Bytes(bytes) => bytes.to_string(),
            Self::Percent(percent) => format!("{percent}%"),
        }
    }

    fn lines(&self, kind: &Kind, changed: bool) -> Vec<(String, bool)> {
        let text = match self {
            Self::Bytes(bytes) => format_memory(*bytes),
            Self::Percent(_) => self.text(kind),
        };
        vec![(text, changed)]
    }
}

/// Declares an enum whose variants have names in the configuration.
macro_rules! named_values {
    ($($(#[$meta:meta])* $type:ident { $($variant:ident = $name:literal),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl $type {
            /// The names in the order in which a refusal lists them.
            pub const NAMES: &[&str] = &[$($name),*];

            /// The name in the configuration.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        impl Setting for $type {
            fn assign(&mut self, _: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
                $(if words[0].eq_ignore_ascii_case($name) {
                    *self = Self::$variant;
                    return Ok(());
                })*
                Err(not_among(Self::NAMES))
            }

            fn text(&self, _: &Kind) -> String {
                self.name().to_owned()
            }
        }
    )*};
}

named_values! {
    /// Which keys go when memory is short.
    MaxmemoryPolicy {
        VolatileLru = "volatile-lru", VolatileLfu = "volatile-lfu",
        VolatileRandom = "volatile-random", VolatileTtl = "volatile-ttl",
        AllkeysLru = "allkeys-lru", AllkeysLfu = "allkeys-lfu",
        AllkeysRandom = "allkeys-random", NoEviction = "noeviction",
    }
    /// The least important messages that are logged.
    LogLevel {
        Debug = "debug", Verbose = "verbose", Notice = "notice", Warning = "warning",
        Nothing = "nothing",
    }
    /// When the append-only file is forced to disk.
    AppendFsync { EverySecond = "everysec", Always = "always", No = "no" }
    /// Who may use a dangerous command or directive: nobody, everybody, local connections.
    LocalAccess { No = "no", Yes = "yes", Local = "local" }
    /// Which channels a new ACL user may use.
    AclPubsubDefault { AllChannels = "allchannels", ResetChannels = "resetchannels" }
    /// Which checks a payload of RESTORE or of a snapshot gets.
    SanitizeDumpPayload { No = "no", Yes = "yes", Clients = "clients" }
    /// What to do about an effect that cannot be propagated.
    PropagationErrorBehavior {
        Ignore = "ignore", Panic = "panic", PanicOnReplicas = "panic-on-replicas",
    }
    /// How a replica loads a snapshot that comes over the socket.
    ReplDisklessLoad { Disabled = "disabled", OnEmptyDb = "on-empty-db", Swapdb = "swapdb" }
    /// What cluster clients are told to connect to.
    EndpointType { Ip = "ip", Hostname = "hostname", UnknownEndpoint = "unknown-endpoint" }
    /// Whether TLS clients need a certificate.
    TlsAuthClients { No = "no", Yes = "yes", Optional = "optional" }
    /// Which system supervises the process.
    Supervised { Upstart = "upstart", Systemd = "systemd", Auto = "auto", No = "no" }
    /// The facility of messages to syslog.
    SyslogFacility {
        User = "user", Local0 = "local0", Local1 = "local1", Local2 = "local2",
        Local3 = "local3", Local4 = "local4", Local5 = "local5", Local6 = "local6",
        Local7 = "local7",
    }
    /// Whether the process asks the out-of-memory killer for a score of its own.
    OomScoreAdj { No = "no", Yes = "yes", Relative = "relative", Absolute = "absolute" }
    /// Valkey: the form of log lines.
    LogFormat { Legacy = "legacy", Logfmt = "logfmt" }
    /// Valkey: the form of the time in log lines.
    LogTimestampFormat { Legacy = "legacy", Iso8601 = "iso8601", Milliseconds = "milliseconds" }
    /// Valkey: whether a cluster file that cannot be saved ends the process.
    ClusterConfigSave { Sync = "sync", BestEffort = "best-effort" }
    /// Valkey: whether dump files of an unknown version are refused.
    RdbVersionCheck { Strict = "strict", Relaxed = "relaxed" }
    /// Valkey: which field of a TLS certificate names the user.
    TlsAuthClientsUser { Off = "off", CommonName = "CN", Uri = "URI" }
}

fn not_among(names: &[&str]) -> Reason {
    format!("argument(s) must be one of the following: {}", names.join(", ")).into()
}

/// What a shutdown by signal does: any of `save`, `nosave`, `now`, `force`; none is `default`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownFlags(u8);

impl ShutdownFlags {
    /// Save even without save points.
    pub const SAVE: Self = Self(1);
    /// Do not save.
    pub const NOSAVE: Self = Self(2);
    /// Do not wait for replicas.
    pub const NOW: Self = Self(4);
    /// End even if saving fails.
    pub const FORCE: Self = Self(8);
    /// The names in the order in which a refusal lists them.
    pub const NAMES: &[&str] = &["default", "save", "nosave", "now", "force"];
    const FLAGS: [Self; 5] = [Self(0), Self::SAVE, Self::NOSAVE, Self::NOW, Self::FORCE];

    /// Whether all of `other` is set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Setting for ShutdownFlags {
    fn assign(&mut self, _: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
        let mut flags = 0;
        for word in words {
            let named = Self::NAMES.iter().position(|name| name.eq_ignore_ascii_case(word));
            flags |= Self::FLAGS[named.ok_or_else(|| not_among(Self::NAMES))?].0;
        }
        if words.is_empty() {
            return Err(not_among(Self::NAMES));
        }
        if Self(flags).contains(Self(Self::SAVE.0 | Self::NOSAVE.0)) {
            return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".into());
        }
        *self = Self(flags);
        Ok(())
    }

    fn text(&self, _: &Kind) -> String {
        let named = Self::NAMES.iter().zip(Self::FLAGS).skip(1);
        let names: Vec<&str> =
            named.filter(|(_, flag)| self.contains(*flag)).map(|(name, _)| *name).collect();
        if names.is_empty() { "default".to_owned() } else { names.join(" ") }
    }
}

/// The classes of keyspace events that are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotifyFlags(u16);

impl NotifyFlags {
    /// `K`: to `__keyspace@<db>__:<key>`.
    pub const KEYSPACE: Self = Self(1);
    /// `E`: to `__keyevent@<db>__:<event>`.
    pub const KEYEVENT: Self = Self(1 << 1);
    /// `g`: commands of no type, such as DEL and EXPIRE.
    pub const GENERIC: Self = Self(1 << 2);
    /// `$`: strings.
    pub const STRING: Self = Self(1 << 3);
    /// `l`: lists.
    pub const LIST: Self = Self(1 << 4);
    /// `s`: sets.
    pub const SET: Self = Self(1 << 5);
    /// `h`: hashes.
    pub const HASH: Self = Self(1 << 6);
    /// `z`: sorted sets.
    pub const ZSET: Self = Self(1 << 7);
    /// `x`: keys that expire.
    pub const EXPIRED: Self = Self(1 << 8);
    /// `e`: keys that are evicted.
    pub const EVICTED: Self = Self(1 << 9);
    /// `t`: streams.
    pub const STREAM: Self = Self(1 << 10);
    /// `m`: reads of keys that are missing; not in `A`.
    pub const KEY_MISS: Self = Self(1 << 11);
    /// `d`: types of modules.
    pub const MODULE: Self = Self(1 << 12);
    /// `n`: keys that are new; not in `A`.
    pub const NEW: Self = Self(1 << 13);
    /// `o`: values that are overwritten; not in `A`.
    pub const OVERWRITTEN: Self = Self(1 << 14);
    /// `c`: values that get another type; not in `A`.
    pub const TYPE_CHANGED: Self = Self(1 << 15);
    /// `A`: all classes but `m`, `n`, `o` and `c`.
    pub const ALL: Self = Self(0b1_0111_1111_1100);

    /// Letters in the order in which they are shown.
    const LETTERS: [(char, Self); 16] = [
        ('g', Self::GENERIC),
        ('$', Self::STRING),
        ('l', Self::LIST),
        ('s', Self::SET),
        ('h', Self::HASH),
        ('z', Self::ZSET),
        ('x', Self::EXPIRED),
        ('e', Self::EVICTED),
        ('t', Self::STREAM),
        ('d', Self::MODULE),
        ('n', Self::NEW),
        ('o', Self::OVERWRITTEN),
        ('c', Self::TYPE_CHANGED),
        ('K', Self::KEYSPACE),
        ('E', Self::KEYEVENT),
        ('m', Self::KEY_MISS),
    ];

    /// Whether all of `other` is set.
    #[inline]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether nothing is published at all.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The classes as bits of `kiln_keyspace::EventClass`; none if no channel is chosen.
    pub fn classes(self) -> u32 {
        let channels = Self::KEYSPACE.0 | Self::KEYEVENT.0;
        if self.0 & channels == 0 { 0 } else { u32::from(self.0 & !channels) }
    }
}

impl Setting for NotifyFlags {
    fn assign(&mut self, _: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
        let mut flags = 0;
        for letter in words[0].chars() {
            let class = match letter {
                'A' => Some(Self::ALL),
                _ => Self::LETTERS.iter().find(|row| row.0 == letter).map(|row| row.1),
            };
            let invalid = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
            flags |= class.ok_or(invalid)?.0;
        }
        *self = Self(flags);
        Ok(())
    }

    fn text(&self, _: &Kind) -> String {
        // Beside `A` Redis shows only `K`, `E` and `m`, though it keeps the others.
        let all = self.contains(Self::ALL);
        let shown = Self::KEYSPACE.0 | Self::KEYEVENT.0 | Self::KEY_MISS.0;
        let shown = if all { shown } else { u16::MAX };
        let mut text = String::from(if all { "A" } else { "" });
        for (letter, class) in Self::LETTERS {
            if self.contains(class) && shown & class.0 != 0 {
                text.push(letter);
            }
        }
        text
    }
}

/// A snapshot is due after `seconds` if at least `changes` writes happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds since the last snapshot.
    pub seconds: u64,
    /// Writes since the last snapshot.
    pub changes: u64,
}

/// All save points; none turns snapshots by time off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavePoints(pub Vec<SavePoint>);

impl SavePoints {
    pub(super) fn of<const N: usize>(points: [(u64, u64); N]) -> Self {
        Self(points.map(|(seconds, changes)| SavePoint { seconds, changes }).into())
    }
}

impl Setting for SavePoints {
    fn assign(&mut self, _: &Kind, words: &[&str], append: bool) -> Result<(), Reason> {
        if words.is_empty() || words == [""] {
            self.0.clear();
            return Ok(());
        }
        let invalid = || Reason::from("Invalid save parameters");
        let mut points = if append { self.0.clone() } else { Vec::new() };
        for pair in words.chunks(2) {
            let [seconds, changes] = pair else { return Err(invalid()) };
            let seconds = seconds.parse().ok().filter(|&seconds| seconds >= 1);
            points.push(SavePoint {
                seconds: seconds.ok_or_else(invalid)?,
                changes: changes.parse().map_err(|_| invalid())?,
            });
        }
        self.0 = points;
        Ok(())
    }

    fn text(&self, _: &Kind) -> String {
        join(self.0.iter().map(|point| format!("{} {}", point.seconds, point.changes)))
    }

    fn lines(&self, _: &Kind, changed: bool) -> Vec<(String, bool)> {
        if self.0.is_empty() {
            return vec![("\"\"".to_owned(), changed)];
        }
        let line = |point: &SavePoint| format!("{} {}", point.seconds, point.changes);
        self.0.iter().map(|point| (line(point), changed)).collect()
    }
}

/// How much unsent output a class of connections may have; 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    /// Bytes at which the connection is closed at once.
    pub hard_bytes: u64,
    /// Bytes at which it is closed if it stays above them for `soft_seconds`.
    pub soft_bytes: u64,
    /// See `soft_bytes`.
    pub soft_seconds: u64,
}

/// The output limits of the three classes of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Ordinary clients, those in MONITOR included.
    pub normal: OutputLimit,
    /// Replicas; shown as `slave`, accepted as `replica` too.
    pub replica: OutputLimit,
    /// Subscribers.
    pub pubsub: OutputLimit,
}

impl Default for OutputLimits {
    fn default() -> Self {
        let limit = |hard_mb: u64, soft_mb: u64, soft_seconds| OutputLimit {
            hard_bytes: hard_mb << 20,
            soft_bytes: soft_mb << 20,
            soft_seconds,
        };
        Self { normal: limit(0, 0, 0), replica: limit(256, 64, 60), pubsub: limit(32, 8, 60) }
    }
}

impl Setting for OutputLimits {
    fn assign(&mut self, _: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
        let mut limits = *self;
        if !words.len().is_multiple_of(4) {
            return Err("Wrong number of arguments in buffer limit configuration.".into());
        }
        for rule in words.chunks(4) {
            let limit = match rule[0].to_ascii_lowercase().as_str() {
                "normal" => &mut limits.normal,
                "slave" | "replica" => &mut limits.replica,
                "pubsub" => &mut limits.pubsub,
                _ => {
                    return Err(
                        "Invalid client class specified in buffer limit configuration.".into()
                    );
                }
            };
            let error =
                "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
            *limit = OutputLimit {
                hard_bytes: parse_memory(rule[1]).ok_or(error)?,
                soft_bytes: parse_memory(rule[2]).ok_or(error)?,
                soft_seconds: rule[3].parse().map_err(|_| error)?,
            };
        }
        *self = limits;
        Ok(())
    }

    fn text(&self, _: &Kind) -> String {
        let classes = [("normal", self.normal), ("slave", self.replica), ("pubsub", self.pubsub)];
        join(classes.map(|(class, limit)| {
            format!("{class} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
        }))
    }

    fn lines(&self, _: &Kind, _: bool) -> Vec<(String, bool)> {
        let default = Self::default();
        [
            ("normal", self.normal, default.normal),
            ("replica", self.replica, default.replica),
            ("pubsub", self.pubsub, default.pubsub),
        ]
        .map(|(class, limit, default)| {
            let (hard, soft) = (format_memory(limit.hard_bytes), format_memory(limit.soft_bytes));
            (format!("{class} {hard} {soft} {}", limit.soft_seconds), limit != default)
        })
        .into()
    }
}

/// Addresses to listen on; a leading `-` means that one that does not exist is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindList(pub Vec<String>);

/// More addresses than anybody has interfaces; Redis's limit.
const BIND_ADDRESSES_MAX: usize = 16;

impl Setting for BindList {
    fn assign(&mut self, _: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
        if words.len() > BIND_ADDRESSES_MAX {
            return Err("Too many bind addresses specified.".into());
        }
        let none = words == [""];
        self.0 = if none { Vec::new() } else { words.iter().map(|&word| word.into()).collect() };
        Ok(())
    }

    fn text(&self, _: &Kind) -> String {
        self.0.join(" ")
    }

    fn lines(&self, _: &Kind, changed: bool) -> Vec<(String, bool)> {
        vec![(if self.0.is_empty() { "\"\"".to_owned() } else { self.0.join(" ") }, changed)]
    }
}

/// The primary that this server copies, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaOf(pub Option<(String, u16)>);

impl Setting for ReplicaOf {
    fn assign(&mut self, _: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
        let &[host, port] = words else { return Err("wrong number of arguments".into()) };
        self.0 = if host.eq_ignore_ascii_case("no") && port.eq_ignore_ascii_case("one") {
            None
        } else {
            Some((host.to_owned(), port.parse().map_err(|_| "Invalid master port")?))
        };
        Ok(())
    }

    fn text(&self, _: &Kind) -> String {
        self.0.as_ref().map(|(host, port)| format!("{host} {port}")).unwrap_or_default()
    }

    fn lines(&self, kind: &Kind, changed: bool) -> Vec<(String, bool)> {
        // `replicaof ""` would not load, so a server that is no replica writes nothing.
        if self.0.is_some() { vec![(self.text(kind), changed)] } else { Vec::new() }
    }
}

/// The scores for the out-of-memory killer: as primary, as replica, as a process in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OomScores(pub [i32; 3]);

impl Setting for OomScores {
    fn assign(&mut self, _: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
        if words.len() != self.0.len() {
            return Err("wrong number of arguments".into());
        }
        let mut scores = [0; 3];
        for (score, word) in scores.iter_mut().zip(words) {
            let valid = word.parse().ok().filter(|value| (-2000..=2000).contains(value));
            *score = valid
                .ok_or("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")?;
        }
        self.0 = scores;
        Ok(())
    }

    fn text(&self, _: &Kind) -> String {
        join(self.0.map(|score| score.to_string()))
    }
}

/// The percentiles that INFO latencystats shows, each 0 to 100.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles(pub Vec<f64>);

impl Setting for Percentiles {
    fn assign(&mut self, _: &Kind, words: &[&str], _: bool) -> Result<(), Reason> {
        let words = if words == [""] { &[] } else { words };
        let mut percentiles = Vec::with_capacity(words.len());
        for word in words {
            let percentile: Option<f64> = word.parse().ok().filter(|value: &f64| !value.is_nan());
            let percentile =
                percentile.ok_or("Invalid latency-tracking-info-percentiles parameters")?;
            if !(0.0..=100.0).contains(&percentile) {
                return Err("latency-tracking-info-percentiles parameters should sit between \
                            [0.0,100.0]"
                    .into());
            }
            percentiles.push(percentile);
        }
        self.0 = percentiles;
        Ok(())
    }

    fn text(&self, _: &Kind) -> String {
        // Six decimals at most, without the zeros that say nothing.
        join(self.0.iter().map(|percentile| {
            let digits = format!("{percentile:.6}");
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        }))
    }

    fn lines(&self, kind: &Kind, changed: bool) -> Vec<(String, bool)> {
        vec![(if self.0.is_empty() { "\"\"".to_owned() } else { self.text(kind) }, changed)]
    }
}

fn join(words: impl IntoIterator<Item = String>) -> String {
    let mut text = String::new();
    for word in words {
        let separator = if text.is_empty() { "" } else { " " };
        write!(text, "{separator}{word}").expect("a string takes all text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{format_memory, parse_memory};

    #[test]
    fn memory_sizes_as_redis_reads_them() {
        for (text, want) in [
            ("0", Some(0)),
            ("", Some(0)),
            ("b", Some(0)),
            ("1B", Some(1)),
            ("1k", Some(1_000)),
            ("1kb", Some(1_024)),
            ("1m", Some(1_000_000)),
            ("1Mb", Some(1 << 20)),
            ("1g", Some(1_000_000_000)),
            ("1GB", Some(1 << 30)),
            ("08", Some(8)),
            ("18446744073709551616", Some(u64::MAX)),
            ("99999999999gb", Some(u64::MAX)),
            ("-1", None),
            ("+5", None),
            (" 5", None),
            ("1 mb", None),
            ("1.5mb", None),
            ("1tb", None),
            ("1%", None),
            ("0x10", None),
        ] {
            assert_eq!(parse_memory(text), want, "{text:?}");
        }
    }

    #[test]
    fn memory_sizes_are_written_in_the_largest_unit() {
        for (bytes, want) in [
            (0, "0"),
            (1_023, "1023"),
            (1_024, "1kb"),
            (100 << 20, "100mb"),
            (1 << 30, "1gb"),
            (2_000_000, "2000000"),
            ((1 << 30) + 1, "1073741825"),
        ] {
            assert_eq!(format_memory(bytes), want);
            assert_eq!(parse_memory(want), Some(bytes));
        }
    }
}
