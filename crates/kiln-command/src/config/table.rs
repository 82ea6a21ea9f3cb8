//! Every directive, once: its field in [`Config`], names, default, kind and meaning.
//!
//! One row of `directives!` gives the field of the struct, its default, and the [`Directive`] by
//! which the file parser, `CONFIG GET`, `CONFIG SET` and `CONFIG REWRITE` reach it. `ACTS` marks
//! what changes how Kiln behaves; a `KEPT` directive is checked, kept and shown, so that tools
//! that set or read it work, and has no other effect.
//!
//! Names, kinds, ranges and defaults are those of Redis 8.2.3, `threads` and what only Valkey has
//! aside; `docs/differences.md` lists the defaults that we choose otherwise.
//!
//! Source: Redis 8.2.3 and Valkey 9.1.2, observed through `CONFIG GET`, `CONFIG SET` and startup.

use kiln_base::number;

use super::parse;
use super::value::{
    AclPubsubDefault, AppendFsync, BindList, ClusterConfigSave, EndpointType, LocalAccess,
    LogFormat, LogLevel, LogTimestampFormat, MaxmemoryPolicy, MemoryOrPercent, NotifyFlags,
    OomScoreAdj, OomScores, OutputLimits, Percentiles, PropagationErrorBehavior, RdbVersionCheck,
    Reason, ReplDisklessLoad, ReplicaOf, SanitizeDumpPayload, SavePoints, Setting, ShutdownFlags,
    Supervised, SyslogFacility, TlsAuthClients, TlsAuthClientsUser, format_memory, parse_memory,
};

/// One directive: a row of the table.
#[derive(Debug)]
pub struct Directive {
    /// The name, in lower case.
    pub name: &'static str,
    /// Older and other names that mean the same, in lower case.
    pub aliases: &'static [&'static str],
    /// Who may change it, and whether patterns show it.
    pub access: Access,
    /// Whether it changes anything in Kiln; otherwise it is only checked, kept and shown.
    pub acts: bool,
    /// What values it takes.
    pub kind: Kind,
    /// What it is for, in one sentence.
    pub doc: &'static str,
    pub(super) get: fn(&Config) -> &dyn Setting,
    pub(super) get_mut: fn(&mut Config) -> &mut dyn Setting,
}

/// Who may change a directive after the start, and whether `CONFIG GET` with a pattern shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether and for whom `CONFIG SET` works.
    pub mutability: Mutability,
    /// Shown to those who ask for it by its full name only.
    pub hidden: bool,
}

/// Whether `CONFIG SET` may change a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutability {
    /// Yes.
    Live,
    /// No: it acts at the start only.
    Immutable,
    /// As `enable-protected-configs` says.
    Protected,
}

/// What values a directive takes.
#[derive(Debug)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// An integer within the bounds.
    Integer(Bounds),
    /// A memory size within the bounds.
    Memory(Bounds),
    /// A memory size, or a percentage of `maxmemory`.
    MemoryOrPercent,
    /// The permissions of a file, in octal digits, up to 777.
    Octal,
    /// One of these names, in any case.
    Enum(&'static [&'static str]),
    /// Any text.
    Text,
    /// Text that passes a check.
    CheckedText(fn(&str) -> Result<(), Reason>),
    /// Several words, separated by spaces.
    Words,
}

/// The smallest and largest number allowed. Redis holds some directives in unsigned variables
/// and then answers otherwise to a number that is negative there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The smallest number allowed.
    pub min: i64,
    /// The largest number allowed.
    pub max: i64,
    /// Whether Redis's variable is unsigned.
    pub unsigned: bool,
}

impl Bounds {
    fn check(self, number: i64) -> Result<i64, Reason> {
        if self.unsigned && number < 0 {
            return Err("argument must be greater or equal to 0".into());
        }
        if !(self.min..=self.max).contains(&number) {
            return Err(format!(
                "argument must be between {} and {} inclusive",
                self.min, self.max
            )
            .into());
        }
        Ok(number)
    }
}

impl Kind {
    /// Whether the value may be more than one word.
    pub fn takes_words(&self) -> bool {
        matches!(self, Self::Words)
    }

    /// Reads the number in `text` and checks it against the bounds.
    pub(super) fn parse_number(&self, text: &str) -> Result<i64, Reason> {
        match self {
            Self::Integer(bounds) => {
                let number = number::parse_i64(text.as_bytes());
                bounds.check(number.ok_or("argument couldn't be parsed into an integer")?)
            }
            Self::Memory(bounds) => {
                let bytes = parse_memory(text).ok_or("argument must be a memory value")?;
                // Beyond `i64` is negative in Redis, which decides about the text of the refusal.
                bounds.check(i64::try_from(bytes).unwrap_or(-1))
            }
            Self::Octal => {
                let mode = i64::from_str_radix(text, 8).ok().filter(|&mode| mode >= 0);
                match mode.ok_or("argument couldn't be parsed as an octal number")? {
                    mode @ 0..=0o777 => Ok(mode),
                    _ => Err("argument must be between 0 and 777 inclusive".into()),
                }
            }
            Self::Bool
            | Self::MemoryOrPercent
            | Self::Enum(_)
            | Self::Text
            | Self::CheckedText(_)
            | Self::Words => unreachable!("only kinds of numbers have fields of numbers"),
        }
    }

    /// `text`, as `CONFIG GET` shows it, in the form that a configuration file has it.
    pub(super) fn file_text(&self, text: &str) -> String {
        match self {
            Self::Memory(_) => format_memory(text.parse().expect("a memory size is a number")),
            Self::Text | Self::CheckedText(_) => parse::quote(text.as_bytes()),
            Self::Bool
            | Self::Integer(_)
            | Self::MemoryOrPercent
            | Self::Octal
            | Self::Enum(_)
            | Self::Words => text.to_owned(),
        }
    }
}

impl Directive {
    /// The row that has `name` as its name or alias, in any case, and that name as the table
    /// spells it.
    pub fn find(name: &str) -> Option<(&'static Self, &'static str)> {
        DIRECTIVES.iter().find_map(|row| {
            let spelled = row.names().find(|known| known.eq_ignore_ascii_case(name))?;
            Some((row, spelled))
        })
    }

    /// The name, then the aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// The value in `config`, as `CONFIG GET` shows it.
    pub fn text(&self, config: &Config) -> String {
        (self.get)(config).text(&self.kind)
    }

    /// Sets the value in `config` from the words after the name.
    pub(super) fn assign(
        &self,
        config: &mut Config,
        words: &[&str],
        append: bool,
    ) -> Result<(), Reason> {
        if !self.kind.takes_words() && words.len() != 1 {
            return Err("wrong number of arguments".into());
        }
        (self.get_mut)(config).assign(&self.kind, words, append)?;
        config.clamp();
        Ok(())
    }
}

/// Makes the struct, its defaults and the table out of the rows.
macro_rules! directives {
    ($(
        $field:ident: $type:ty = $default:expr, $name:literal $aliases:expr,
            $access:ident $effect:ident $kind:expr, $doc:literal;
    )*) => {
        /// The configuration: a field per directive, and what only a file can say.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $(#[doc = concat!("`", $name, "`: ", $doc)] pub $field: $type,)*
            /// `rename-command`: commands and the names they go by instead; empty removes one.
            pub rename_commands: Vec<(String, String)>,
            /// `user`: the words after it, for the access control list.
            pub users: Vec<Vec<String>>,
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    rename_commands: Vec::new(),
                    users: Vec::new(),
                }
            }
        }

        /// All directives, in the order in which `CONFIG GET` shows them.
        pub static DIRECTIVES: &[Directive] = &[$(Directive {
            name: $name,
            aliases: &$aliases,
            access: $access,
            acts: $effect,
            kind: $kind,
            doc: $doc,
            get: |config| &config.$field,
            get_mut: |config| &mut config.$field,
        },)*];
    };
}

impl Config {
    /// Brings values that are allowed but out of bounds to the bounds, as Redis does with the
    /// first three.
    fn clamp(&mut self) {
        self.hz = self.hz.clamp(1, 500);
        self.repl_backlog_size = self.repl_backlog_size.max(16 << 10);
        if self.watchdog_period != 0 {
            self.watchdog_period = self.watchdog_period.max(200);
        }
        self.client_query_buffer_limit = self.client_query_buffer_limit.min(BUFFER_BYTES_MAX);
        self.proto_max_bulk_len = self.proto_max_bulk_len.min(BUFFER_BYTES_MAX);
    }
}

const ACTS: bool = true;
const KEPT: bool = false;
const LIVE: Access = Access { mutability: Mutability::Live, hidden: false };
const FIXED: Access = Access { mutability: Mutability::Immutable, hidden: false };
const PROTECTED: Access = Access { mutability: Mutability::Protected, hidden: false };
const HIDDEN: Access = Access { mutability: Mutability::Live, hidden: true };
const HIDDEN_FIXED: Access = Access { mutability: Mutability::Immutable, hidden: true };

const I32: i64 = i32::MAX as i64;
const U32: i64 = u32::MAX as i64;
const I64: i64 = i64::MAX;
const PORT: Kind = int(0, u16::MAX as i64);
const KB: i64 = 1 << 10;
const MB: i64 = 1 << 20;
/// Words are spans of 32 bits in their buffer, so that neither a buffer nor a word can be larger.
const BUFFER_BYTES_MAX: u64 = u32::MAX as u64;

const fn int(min: i64, max: i64) -> Kind {
    Kind::Integer(Bounds { min, max, unsigned: false })
}

const fn uint(min: i64, max: i64) -> Kind {
    Kind::Integer(Bounds { min, max, unsigned: true })
}

const fn mem(min: i64, max: i64) -> Kind {
    Kind::Memory(Bounds { min, max, unsigned: false })
}

const fn umem(min: i64, max: i64) -> Kind {
    Kind::Memory(Bounds { min, max, unsigned: true })
}

/// The default of a text.
fn text(default: &str) -> String {
    default.to_owned()
}

fn db_file_name(name: &str) -> Result<(), Reason> {
    not_a_path(name, "dbfilename can't be a path, just a filename")
}

fn append_file_name(name: &str) -> Result<(), Reason> {
    not_empty(name, "appendfilename can't be empty")?;
    not_a_path(name, "appendfilename can't be a path, just a filename")
}

fn append_dir_name(name: &str) -> Result<(), Reason> {
    not_empty(name, "appenddirname can't be empty")?;
    not_a_path(name, "appenddirname can't be a path, just a dirname")
}

fn not_empty(name: &str, reason: &'static str) -> Result<(), Reason> {
    if name.is_empty() { Err(reason.into()) } else { Ok(()) }
}

fn not_a_path(name: &str, reason: &'static str) -> Result<(), Reason> {
    if name.contains('/') { Err(reason.into()) } else { Ok(()) }
}

fn host_name(name: &str) -> Result<(), Reason> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    if name.len() >= 256 {
        return Err("Hostnames must be less than 256 characters".into());
    }
    if !name.bytes().all(allowed) {
        return Err("Hostnames may only contain alphanumeric characters, hyphens or dots".into());
    }
    Ok(())
}

fn node_name(name: &str) -> Result<(), Reason> {
    if name.contains(|c| "!#$%&()*+.:;<>?@[]^{|}~".contains(c)) {
        return Err("Announced human node name contained invalid character".into());
    }
    Ok(())
}

/// Kiln compares bytes, which is what these locales do.
fn byte_order_locale(name: &str) -> Result<(), Reason> {
    if ["", "C", "POSIX", "C.UTF-8", "C.utf8"].contains(&name) {
        Ok(())
    } else {
        Err("Invalid locale name".into())
    }
}

/// Variables stand in braces; `{{` is a brace.
fn title_template(template: &str) -> Result<(), Reason> {
    const VARIABLES: [&str; 7] =
        ["title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"];
    let invalid = || Reason::from("template format is invalid or contains unknown variables");
    if template.trim_ascii().is_empty() {
        return Err(invalid());
    }
    let mut rest = template;
    while let Some((_, after_brace)) = rest.split_once('{') {
        if let Some(after_braces) = after_brace.strip_prefix('{') {
            rest = after_braces;
            continue;
        }
        let (name, after) = after_brace.split_once('}').ok_or_else(invalid)?;
        if !VARIABLES.contains(&name) {
            return Err(invalid());
        }
        rest = after;
    }
    Ok(())
}

directives! {
    // The server and its connections.
    threads: u32 = 0, "threads" [], FIXED ACTS int(0, 1024),
        "Worker threads; 0 means one for each core.";
    port: u16 = 6379, "port" [], LIVE ACTS PORT,
        "The TCP port to listen on; 0 turns it off.";
    bind: BindList = BindList(vec![text("127.0.0.1"), text("-::1")]), "bind" [],
        LIVE ACTS Kind::Words,
        "Addresses to listen on; a leading `-` allows one to be missing.";
    bind_source_addr: String = text(""), "bind-source-addr" [], LIVE KEPT Kind::Text,
        "The address that outgoing connections come from.";
    protected_mode: bool = true, "protected-mode" [], LIVE ACTS Kind::Bool,
        "Without a password, refuse connections from other machines.";
    unixsocket: String = text(""), "unixsocket" [], FIXED ACTS Kind::Text,
        "The path of a Unix socket to listen on; empty turns it off.";
    unixsocketperm: u32 = 0, "unixsocketperm" [], FIXED ACTS Kind::Octal,
        "The permissions of the Unix socket, in octal; 0 leaves them alone.";
    unixsocketgroup: String = text(""), "unixsocketgroup" [], FIXED KEPT Kind::Text,
        "Valkey: the group that owns the Unix socket.";
    tcp_backlog: u32 = 511, "tcp-backlog" [], FIXED ACTS int(0, I32),
        "How many connections may wait to be accepted.";
    tcp_keepalive: u32 = 300, "tcp-keepalive" [], LIVE ACTS int(0, I32),
        "Seconds between probes of silent connections; 0 sends none.";
    timeout: u32 = 0, "timeout" [], LIVE ACTS int(0, I32),
        "Seconds after which an idle client is disconnected; 0 means never.";
    maxclients: u32 = 10_000, "maxclients" [], LIVE ACTS uint(1, U32),
        "How many clients may be connected.";
    max_new_connections_per_cycle: u32 = 10, "max-new-connections-per-cycle" [],
        LIVE KEPT uint(1, 1000),
        "How many connections one round of the event loop accepts.";
    max_new_tls_connections_per_cycle: u32 = 1, "max-new-tls-connections-per-cycle" [],
        LIVE KEPT uint(1, 1000),
        "How many TLS connections one round of the event loop accepts.";
    socket_mark_id: u32 = 0, "socket-mark-id" [], FIXED KEPT uint(0, U32),
        "A mark for the packets of listening sockets.";
    mptcp: bool = false, "mptcp" [], FIXED KEPT Kind::Bool,
        "Valkey: listen with multipath TCP.";
    databases: u32 = 16, "databases" [], FIXED ACTS int(1, I32),
        "How many databases there are.";
    daemonize: bool = false, "daemonize" [], FIXED ACTS Kind::Bool,
        "Run in the background.";
    pidfile: String = text(""), "pidfile" [], FIXED ACTS Kind::Text,
        "The file that holds the process id.";
    dir: String = text(""), "dir" [], PROTECTED ACTS Kind::Text,
        "The working directory, where data files are.";
    supervised: Supervised = Supervised::No, "supervised" [],
        FIXED KEPT Kind::Enum(Supervised::NAMES),
        "Which supervisor to tell when the server is ready.";
    hz: u32 = 10, "hz" [], LIVE ACTS int(0, I32),
        "Rounds of background work per second, 1 to 500.";
    dynamic_hz: bool = true, "dynamic-hz" [], LIVE KEPT Kind::Bool,
        "Raise `hz` when many clients are connected.";
    io_threads: u32 = 1, "io-threads" [], FIXED KEPT int(1, 128),
        "Redis's threads for sockets; Kiln's are set by `threads`.";
    prefetch_batch_max_size: u32 = 16, "prefetch-batch-max-size" [], HIDDEN KEPT int(0, 128),
        "How many keys Redis prefetches at a time.";
    availability_zone: String = text(""), "availability-zone" [], LIVE KEPT Kind::Text,
        "Valkey: the zone this server runs in, as clients are told.";
    extended_redis_compatibility: bool = false, "extended-redis-compatibility" [],
        LIVE KEPT Kind::Bool,
        "Valkey: call itself Redis where clients see it.";
    hash_seed: String = text(""), "hash-seed" [], FIXED KEPT Kind::Text,
        "Valkey: what the hash of keys starts from.";
    import_mode: bool = false, "import-mode" [], LIVE KEPT Kind::Bool,
        "Valkey: keep expired keys while data is brought in from elsewhere.";

    // Logs and the process.
    loglevel: LogLevel = LogLevel::Notice, "loglevel" [],
        LIVE ACTS Kind::Enum(LogLevel::NAMES),
        "The least important messages that are logged.";
    logfile: String = text(""), "logfile" [], FIXED ACTS Kind::Text,
        "The file for the log; empty means standard output.";
    log_format: LogFormat = LogFormat::Legacy, "log-format" [],
        LIVE KEPT Kind::Enum(LogFormat::NAMES),
        "Valkey: the form of log lines.";
    log_timestamp_format: LogTimestampFormat = LogTimestampFormat::Legacy,
        "log-timestamp-format" [], LIVE KEPT Kind::Enum(LogTimestampFormat::NAMES),
        "Valkey: the form of the time in log lines.";
    hide_user_data_from_log: bool = false, "hide-user-data-from-log" [], LIVE KEPT Kind::Bool,
        "Keep keys and values out of the log.";
    syslog_enabled: bool = false, "syslog-enabled" [], FIXED KEPT Kind::Bool,
        "Log to syslog too.";
    syslog_ident: String = text("redis"), "syslog-ident" [], FIXED KEPT Kind::Text,
        "The name of the server in syslog.";
    syslog_facility: SyslogFacility = SyslogFacility::Local0, "syslog-facility" [],
        FIXED KEPT Kind::Enum(SyslogFacility::NAMES),
        "The facility of messages to syslog.";
    always_show_logo: bool = false, "always-show-logo" [], FIXED KEPT Kind::Bool,
        "Show the logo at the start even if the log is no terminal.";
    set_proc_title: bool = true, "set-proc-title" [], FIXED KEPT Kind::Bool,
        "Show the state of the server in the title of the process.";
    proc_title_template: String = text("{title} {listen-addr} {server-mode}"),
        "proc-title-template" [], LIVE KEPT Kind::CheckedText(title_template),
        "How the title of the process is made.";
    crash_log_enabled: bool = true, "crash-log-enabled" [], LIVE KEPT Kind::Bool,
        "Log the state of the server when it crashes.";
    crash_memcheck_enabled: bool = true, "crash-memcheck-enabled" [], LIVE KEPT Kind::Bool,
        "Test the memory when the server crashes.";
    use_exit_on_panic: bool = false, "use-exit-on-panic" [], HIDDEN KEPT Kind::Bool,
        "End by exit rather than abort after a broken invariant.";
    watchdog_period: u32 = 0, "watchdog-period" [], HIDDEN KEPT int(0, I32),
        "Milliseconds after which a stuck server logs where it is; 0 never.";
    disable_thp: bool = true, "disable-thp" [], FIXED KEPT Kind::Bool,
        "Turn transparent huge pages off for the process.";
    oom_score_adj: OomScoreAdj = OomScoreAdj::No, "oom-score-adj" [],
        LIVE KEPT Kind::Enum(OomScoreAdj::NAMES),
        "Ask the out-of-memory killer for scores of our own.";
    oom_score_adj_values: OomScores = OomScores([0, 200, 800]), "oom-score-adj-values" [],
        LIVE KEPT Kind::Words,
        "Scores as a primary, as a replica and for processes in the background.";
    ignore_warnings: String = text(""), "ignore-warnings" [], LIVE KEPT Kind::Text,
        "Warnings at the start that are no reason to end.";
    locale_collate: String = text(""), "locale-collate" [],
        LIVE KEPT Kind::CheckedText(byte_order_locale),
        "The locale by which SORT ALPHA compares.";
    jemalloc_bg_thread: bool = true, "jemalloc-bg-thread" [], LIVE KEPT Kind::Bool,
        "Let the allocator return memory from a thread of its own.";
    server_cpulist: String = text(""), "server-cpulist" ["server_cpulist"], FIXED KEPT Kind::Text,
        "Cores for the server's threads.";
    bio_cpulist: String = text(""), "bio-cpulist" ["bio_cpulist"], FIXED KEPT Kind::Text,
        "Cores for threads in the background.";
    aof_rewrite_cpulist: String = text(""), "aof-rewrite-cpulist" ["aof_rewrite_cpulist"],
        FIXED KEPT Kind::Text,
        "Cores for rewriting the append-only file.";
    bgsave_cpulist: String = text(""), "bgsave-cpulist" ["bgsave_cpulist"], FIXED KEPT Kind::Text,
        "Cores for snapshots.";
    shutdown_timeout: u32 = 10, "shutdown-timeout" [], LIVE ACTS int(0, I32),
        "Seconds that a shutdown waits for replicas to catch up.";
    shutdown_on_sigint: ShutdownFlags = ShutdownFlags::default(), "shutdown-on-sigint" [],
        LIVE ACTS Kind::Words,
        "What SIGINT does: default, save, nosave, now, force.";
    shutdown_on_sigterm: ShutdownFlags = ShutdownFlags::default(), "shutdown-on-sigterm" [],
        LIVE ACTS Kind::Words,
        "What SIGTERM does: default, save, nosave, now, force.";

    // Who may do what.
    requirepass: String = text(""), "requirepass" [], LIVE ACTS Kind::Text,
        "The password of the default user; empty means none.";
    aclfile: String = text(""), "aclfile" [], FIXED ACTS Kind::Text,
        "The file that holds the users.";
    acllog_max_len: u64 = 128, "acllog-max-len" [], LIVE ACTS int(0, I64),
        "How many entries ACL LOG keeps.";
    acl_pubsub_default: AclPubsubDefault = AclPubsubDefault::ResetChannels,
        "acl-pubsub-default" [], LIVE ACTS Kind::Enum(AclPubsubDefault::NAMES),
        "Which channels a new user may use.";
    enable_protected_configs: LocalAccess = LocalAccess::No, "enable-protected-configs" [],
        FIXED ACTS Kind::Enum(LocalAccess::NAMES),
        "Who may set the directives that name files.";
    enable_debug_command: LocalAccess = LocalAccess::No, "enable-debug-command" [],
        FIXED ACTS Kind::Enum(LocalAccess::NAMES),
        "Who may use DEBUG.";
    enable_module_command: LocalAccess = LocalAccess::No, "enable-module-command" [],
        FIXED KEPT Kind::Enum(LocalAccess::NAMES),
        "Who may use MODULE.";

    // Memory.
    maxmemory: u64 = 0, "maxmemory" [], LIVE ACTS umem(0, I64),
        "Bytes that the data may take before keys are evicted or writes refused; 0 means no limit.";
    maxmemory_policy: MaxmemoryPolicy = MaxmemoryPolicy::NoEviction, "maxmemory-policy" [],
        LIVE ACTS Kind::Enum(MaxmemoryPolicy::NAMES),
        "Which keys go when memory is short.";
    maxmemory_samples: u32 = 5, "maxmemory-samples" [], LIVE ACTS int(1, 64),
        "How many keys are compared to find one to evict.";
    maxmemory_eviction_tenacity: u32 = 10, "maxmemory-eviction-tenacity" [], LIVE ACTS int(0, 100),
        "How long a command may evict: 0 is short, 100 as long as it takes.";
    maxmemory_clients: MemoryOrPercent = MemoryOrPercent::Bytes(0), "maxmemory-clients" [],
        LIVE ACTS Kind::MemoryOrPercent,
        "Memory that clients' buffers may take together; the largest clients go first.";
    lfu_log_factor: u32 = 10, "lfu-log-factor" [], LIVE ACTS int(0, I32),
        "How slowly the counter of uses grows.";
    lfu_decay_time: u32 = 1, "lfu-decay-time" [], LIVE ACTS int(0, I32),
        "Minutes after which the counter of uses falls by one.";
    client_query_buffer_limit: u64 = 1 << 30, "client-query-buffer-limit" [],
        LIVE ACTS umem(MB, I64),
        "Bytes of unread input that a client may have.";
    client_output_buffer_limit: OutputLimits = OutputLimits::default(),
        "client-output-buffer-limit" [], LIVE ACTS Kind::Words,
        "Bytes of unsent output that clients may have, by class: hard, soft, soft seconds.";
    proto_max_bulk_len: u64 = 512 << 20, "proto-max-bulk-len" [], LIVE ACTS mem(MB, I64),
        "The largest word of a command, and with it the largest string.";
    active_expire_effort: u32 = 1, "active-expire-effort" [], LIVE ACTS int(1, 10),
        "How much time goes into finding expired keys.";
    lazyfree_lazy_eviction: bool = false, "lazyfree-lazy-eviction" [], LIVE ACTS Kind::Bool,
        "Free evicted values in the background.";
    lazyfree_lazy_expire: bool = false, "lazyfree-lazy-expire" [], LIVE ACTS Kind::Bool,
        "Free expired values in the background.";
    lazyfree_lazy_server_del: bool = false, "lazyfree-lazy-server-del" [], LIVE ACTS Kind::Bool,
        "Free overwritten values in the background.";
    lazyfree_lazy_user_del: bool = false, "lazyfree-lazy-user-del" [], LIVE ACTS Kind::Bool,
        "Make DEL free in the background, as UNLINK does.";
    lazyfree_lazy_user_flush: bool = false, "lazyfree-lazy-user-flush" [], LIVE ACTS Kind::Bool,
        "Make FLUSHALL and FLUSHDB free in the background unless told otherwise.";
    activerehashing: bool = true, "activerehashing" [], LIVE KEPT Kind::Bool,
        "Go on with resizing tables while idle.";
    activedefrag: bool = false, "activedefrag" [], LIVE KEPT Kind::Bool,
        "Move values to undo the fragmentation of memory.";
    active_defrag_ignore_bytes: u64 = 100 << 20, "active-defrag-ignore-bytes" [],
        LIVE KEPT umem(1, I64),
        "Bytes of fragmentation that are left alone.";
    active_defrag_threshold_lower: u32 = 10, "active-defrag-threshold-lower" [],
        LIVE KEPT int(0, 1000),
        "Percent of fragmentation at which defragmentation starts.";
    active_defrag_threshold_upper: u32 = 100, "active-defrag-threshold-upper" [],
        LIVE KEPT int(0, 1000),
        "Percent of fragmentation at which it tries its hardest.";
    active_defrag_cycle_min: u32 = 1, "active-defrag-cycle-min" [], LIVE KEPT int(1, 99),
        "Percent of a core at the lower threshold.";
    active_defrag_cycle_max: u32 = 25, "active-defrag-cycle-max" [], LIVE KEPT int(1, 99),
        "Percent of a core at the upper threshold.";
    active_defrag_cycle_us: u32 = 500, "active-defrag-cycle-us" [], LIVE KEPT int(0, 100_000),
        "Valkey: microseconds of one round.";
    active_defrag_max_scan_fields: u64 = 1000, "active-defrag-max-scan-fields" [],
        LIVE KEPT int(1, I64),
        "How many elements of a collection are moved at once.";

    // Encodings.
    hash_max_listpack_entries: u64 = 512, "hash-max-listpack-entries" ["hash-max-ziplist-entries"],
        LIVE ACTS uint(0, I64),
        "The most fields of a hash that is a listpack.";
    hash_max_listpack_value: u64 = 64, "hash-max-listpack-value" ["hash-max-ziplist-value"],
        LIVE ACTS umem(0, I64),
        "The longest field or value of a hash that is a listpack.";
    list_max_listpack_size: i32 = -2, "list-max-listpack-size" ["list-max-ziplist-size"],
        LIVE ACTS int(i32::MIN as i64, I32),
        "The most elements of a list node; -1 to -5 mean 4, 8, 16, 32 and 64 KiB instead.";
    list_compress_depth: u32 = 0, "list-compress-depth" [], LIVE KEPT int(0, I32),
        "How many list nodes at each end are not compressed; 0 compresses none.";
    set_max_intset_entries: u64 = 512, "set-max-intset-entries" [], LIVE ACTS uint(0, I64),
        "The most members of a set that is an intset.";
    set_max_listpack_entries: u64 = 128, "set-max-listpack-entries" [], LIVE ACTS uint(0, I64),
        "The most members of a set that is a listpack.";
    set_max_listpack_value: u64 = 64, "set-max-listpack-value" [], LIVE ACTS uint(0, I64),
        "The longest member of a set that is a listpack.";
    zset_max_listpack_entries: u64 = 128, "zset-max-listpack-entries" ["zset-max-ziplist-entries"],
        LIVE ACTS uint(0, I64),
        "The most members of a sorted set that is a listpack.";
    zset_max_listpack_value: u64 = 64, "zset-max-listpack-value" ["zset-max-ziplist-value"],
        LIVE ACTS umem(0, I64),
        "The longest member of a sorted set that is a listpack.";
    hll_sparse_max_bytes: u64 = 3000, "hll-sparse-max-bytes" [], LIVE ACTS umem(0, I64),
        "The largest HyperLogLog in the sparse form.";
    stream_node_max_bytes: u64 = 4096, "stream-node-max-bytes" [], LIVE ACTS umem(0, I64),
        "The most bytes of a stream node; 0 means no limit.";
    stream_node_max_entries: u64 = 100, "stream-node-max-entries" [], LIVE ACTS int(0, I64),
        "The most entries of a stream node; 0 means no limit.";
    vset_force_single_threaded_execution: bool = false, "vset-force-single-threaded-execution" [],
        LIVE KEPT Kind::Bool,
        "Search vector sets on the thread of the connection.";

    // Watching the server.
    slowlog_log_slower_than: i64 = 10_000, "slowlog-log-slower-than"
        ["commandlog-execution-slower-than"], LIVE ACTS int(-1, I64),
        "Microseconds from which a command is slow; 0 logs all, -1 none.";
    slowlog_max_len: u64 = 128, "slowlog-max-len" ["commandlog-slow-execution-max-len"],
        LIVE ACTS int(0, I64),
        "How many entries the slow log keeps.";
    commandlog_request_larger_than: i64 = MB, "commandlog-request-larger-than" [],
        LIVE KEPT int(-1, I64),
        "Valkey: bytes from which a command is large.";
    commandlog_large_request_max_len: u64 = 128, "commandlog-large-request-max-len" [],
        LIVE KEPT int(0, I64),
        "Valkey: how many entries the log of large commands keeps.";
    commandlog_reply_larger_than: i64 = MB, "commandlog-reply-larger-than" [],
        LIVE KEPT int(-1, I64),
        "Valkey: bytes from which a reply is large.";
    commandlog_large_reply_max_len: u64 = 128, "commandlog-large-reply-max-len" [],
        LIVE KEPT int(0, I64),
        "Valkey: how many entries the log of large replies keeps.";
    latency_monitor_threshold: u64 = 0, "latency-monitor-threshold" [], LIVE ACTS int(0, I64),
        "Milliseconds from which an event is recorded for LATENCY; 0 records none.";
    latency_tracking: bool = true, "latency-tracking" [], LIVE ACTS Kind::Bool,
        "Keep a histogram of the time of each command.";
    latency_tracking_info_percentiles: Percentiles = Percentiles(vec![50.0, 99.0, 99.9]),
        "latency-tracking-info-percentiles" [], LIVE ACTS Kind::Words,
        "The percentiles that INFO latencystats shows.";
    notify_keyspace_events: NotifyFlags = NotifyFlags::default(), "notify-keyspace-events" [],
        LIVE ACTS Kind::Text,
        "The classes of keyspace events that are published.";
    tracking_table_max_keys: u64 = 1_000_000, "tracking-table-max-keys" [], LIVE ACTS uint(0, I64),
        "How many keys client-side caching remembers; 0 means no limit.";
    busy_reply_threshold: u64 = 5000, "busy-reply-threshold" ["lua-time-limit"],
        LIVE ACTS int(0, I64),
        "Milliseconds after which a script may be killed and others are told BUSY.";
    lua_enable_deprecated_api: bool = false, "lua-enable-deprecated-api" [],
        HIDDEN_FIXED KEPT Kind::Bool,
        "Give scripts the functions that Redis 8 took away.";

    // Snapshots and the append-only file.
    save: SavePoints = SavePoints::of([(3600, 1), (300, 100), (60, 10_000)]), "save" [],
        LIVE ACTS Kind::Words,
        "When a snapshot is due: seconds and changes, repeated; empty means never.";
    dbfilename: String = text("dump.rdb"), "dbfilename" [],
        PROTECTED ACTS Kind::CheckedText(db_file_name),
        "The name of the snapshot.";
    rdbcompression: bool = true, "rdbcompression" [], LIVE ACTS Kind::Bool,
        "Compress strings in snapshots.";
    rdbchecksum: bool = true, "rdbchecksum" [], FIXED ACTS Kind::Bool,
        "Give snapshots a checksum, and check it.";
    rdb_version_check: RdbVersionCheck = RdbVersionCheck::Strict, "rdb-version-check" [],
        LIVE KEPT Kind::Enum(RdbVersionCheck::NAMES),
        "Valkey: whether snapshots of an unknown version are refused.";
    rdb_del_sync_files: bool = false, "rdb-del-sync-files" [], LIVE KEPT Kind::Bool,
        "Delete snapshots that only replicas needed.";
    rdb_save_incremental_fsync: bool = true, "rdb-save-incremental-fsync" [], LIVE ACTS Kind::Bool,
        "Force snapshots to disk piece by piece.";
    rdb_key_save_delay: i32 = 0, "rdb-key-save-delay" [], HIDDEN KEPT int(i32::MIN as i64, I32),
        "Microseconds to wait after each key of a snapshot, for tests.";
    key_load_delay: i32 = 0, "key-load-delay" [], HIDDEN KEPT int(i32::MIN as i64, I32),
        "Microseconds to wait after each key that is loaded, for tests.";
    loading_process_events_interval_bytes: u32 = 512 << 10,
        "loading-process-events-interval-bytes" [], HIDDEN KEPT int(KB, I32),
        "Bytes to load between looks at the connections.";
    stop_writes_on_bgsave_error: bool = true, "stop-writes-on-bgsave-error" [],
        LIVE ACTS Kind::Bool,
        "Refuse writes after a snapshot has failed.";
    sanitize_dump_payload: SanitizeDumpPayload = SanitizeDumpPayload::No,
        "sanitize-dump-payload" [], LIVE KEPT Kind::Enum(SanitizeDumpPayload::NAMES),
        "Which payloads are checked in full; Kiln checks all of them.";
    appendonly: bool = false, "appendonly" [], LIVE ACTS Kind::Bool,
        "Keep an append-only file.";
    appendfilename: String = text("appendonly.aof"), "appendfilename" [],
        FIXED ACTS Kind::CheckedText(append_file_name),
        "The first part of the names of append-only files.";
    appenddirname: String = text("appendonlydir"), "appenddirname" [],
        FIXED ACTS Kind::CheckedText(append_dir_name),
        "The directory for append-only files, inside `dir`.";
    appendfsync: AppendFsync = AppendFsync::EverySecond, "appendfsync" [],
        LIVE ACTS Kind::Enum(AppendFsync::NAMES),
        "When the append-only file is forced to disk.";
    no_appendfsync_on_rewrite: bool = false, "no-appendfsync-on-rewrite" [], LIVE ACTS Kind::Bool,
        "Do not force the file to disk while a snapshot or rewrite runs.";
    auto_aof_rewrite_percentage: u32 = 100, "auto-aof-rewrite-percentage" [],
        LIVE ACTS int(0, I32),
        "Growth since the last rewrite at which the next one starts; 0 means never.";
    auto_aof_rewrite_min_size: u64 = 64 << 20, "auto-aof-rewrite-min-size" [],
        LIVE ACTS mem(0, I64),
        "The smallest file that is rewritten for its growth.";
    aof_load_truncated: bool = true, "aof-load-truncated" [], LIVE ACTS Kind::Bool,
        "Load a file whose end is missing, rather than refuse to start.";
    aof_use_rdb_preamble: bool = true, "aof-use-rdb-preamble" [], LIVE ACTS Kind::Bool,
        "Write the base of the append-only file as a snapshot.";
    aof_rewrite_incremental_fsync: bool = true, "aof-rewrite-incremental-fsync" [],
        LIVE ACTS Kind::Bool,
        "Force a rewritten file to disk piece by piece.";
    aof_timestamp_enabled: bool = false, "aof-timestamp-enabled" [], LIVE ACTS Kind::Bool,
        "Note the time in the append-only file.";

    // Replication.
    replicaof: ReplicaOf = ReplicaOf(None), "replicaof" ["slaveof"], FIXED KEPT Kind::Words,
        "The host and port of the primary to copy.";
    masterauth: String = text(""), "masterauth" ["primaryauth"], LIVE KEPT Kind::Text,
        "The password for the primary.";
    masteruser: String = text(""), "masteruser" ["primaryuser"], LIVE KEPT Kind::Text,
        "The user for the primary.";
    replica_read_only: bool = true, "replica-read-only" ["slave-read-only"], LIVE KEPT Kind::Bool,
        "Refuse writes while a replica.";
    replica_serve_stale_data: bool = true, "replica-serve-stale-data" ["slave-serve-stale-data"],
        LIVE KEPT Kind::Bool,
        "Answer reads while the primary is out of reach.";
    replica_ignore_maxmemory: bool = true, "replica-ignore-maxmemory" ["slave-ignore-maxmemory"],
        LIVE KEPT Kind::Bool,
        "Leave eviction to the primary.";
    replica_ignore_disk_write_errors: bool = false, "replica-ignore-disk-write-errors" [],
        LIVE KEPT Kind::Bool,
        "Go on as a replica when the disk fails.";
    replica_lazy_flush: bool = false, "replica-lazy-flush" ["slave-lazy-flush"],
        LIVE KEPT Kind::Bool,
        "Free the old data in the background before a full sync.";
    replica_priority: u32 = 100, "replica-priority" ["slave-priority"], LIVE KEPT int(0, I32),
        "Lower is promoted first; 0 is never promoted.";
    replica_announced: bool = true, "replica-announced" [], LIVE KEPT Kind::Bool,
        "Be listed by Sentinel.";
    replica_announce_ip: String = text(""), "replica-announce-ip" ["slave-announce-ip"],
        LIVE KEPT Kind::Text,
        "The address that the primary is told.";
    replica_announce_port: u16 = 0, "replica-announce-port" ["slave-announce-port"],
        LIVE KEPT PORT,
        "The port that the primary is told.";
    replica_full_sync_buffer_limit: u64 = 0, "replica-full-sync-buffer-limit" [],
        LIVE KEPT mem(0, I64),
        "Bytes that a replica buffers during a full sync.";
    min_replicas_to_write: u32 = 0, "min-replicas-to-write" ["min-slaves-to-write"],
        LIVE KEPT int(0, I32),
        "Refuse writes with fewer replicas; 0 means never.";
    min_replicas_max_lag: u32 = 10, "min-replicas-max-lag" ["min-slaves-max-lag"],
        LIVE KEPT int(0, I32),
        "Seconds after which a silent replica does not count.";
    repl_backlog_size: u64 = 1 << 20, "repl-backlog-size" [], LIVE KEPT mem(1, I64),
        "Bytes of effects that are kept for replicas that come back.";
    repl_backlog_ttl: u64 = 3600, "repl-backlog-ttl" [], LIVE KEPT int(0, I64),
        "Seconds without replicas after which the backlog is dropped; 0 means never.";
    repl_timeout: u32 = 60, "repl-timeout" [], LIVE KEPT int(1, I32),
        "Seconds of silence after which a replication link is dead.";
    repl_ping_replica_period: u32 = 10, "repl-ping-replica-period" ["repl-ping-slave-period"],
        LIVE KEPT int(1, I32),
        "Seconds between the primary's pings.";
    repl_disable_tcp_nodelay: bool = false, "repl-disable-tcp-nodelay" [], LIVE KEPT Kind::Bool,
        "Send to replicas in fewer, later packets.";
    repl_diskless_sync: bool = true, "repl-diskless-sync" [], LIVE KEPT Kind::Bool,
        "Send snapshots to replicas without a file.";
    repl_diskless_sync_delay: u32 = 5, "repl-diskless-sync-delay" [], LIVE KEPT int(0, I32),
        "Seconds to wait for further replicas before a snapshot.";
    repl_diskless_sync_max_replicas: u32 = 0, "repl-diskless-sync-max-replicas" [],
        LIVE KEPT int(0, I32),
        "How many replicas end that wait; 0 means none do.";
    repl_diskless_load: ReplDisklessLoad = ReplDisklessLoad::Disabled, "repl-diskless-load" [],
        LIVE KEPT Kind::Enum(ReplDisklessLoad::NAMES),
        "How a replica loads a snapshot that comes over the socket.";
    repl_rdb_channel: bool = true, "repl-rdb-channel" [], HIDDEN KEPT Kind::Bool,
        "Send the snapshot over a connection of its own.";
    dual_channel_replication_enabled: bool = false, "dual-channel-replication-enabled" [],
        LIVE KEPT Kind::Bool,
        "Valkey: send the snapshot over a connection of its own.";
    repl_mptcp: bool = false, "repl-mptcp" [], LIVE KEPT Kind::Bool,
        "Valkey: replicate over multipath TCP.";
    propagation_error_behavior: PropagationErrorBehavior = PropagationErrorBehavior::Ignore,
        "propagation-error-behavior" [], LIVE KEPT Kind::Enum(PropagationErrorBehavior::NAMES),
        "What to do about an effect that cannot be propagated.";

    // The cluster.
    cluster_enabled: bool = false, "cluster-enabled" [], FIXED KEPT Kind::Bool,
        "Be a node of a cluster.";
    cluster_config_file: String = text("nodes.conf"), "cluster-config-file" [],
        FIXED KEPT Kind::Text,
        "The file in which Redis's nodes remember the cluster.";
    cluster_config_save_behavior: ClusterConfigSave = ClusterConfigSave::Sync,
        "cluster-config-save-behavior" [], LIVE KEPT Kind::Enum(ClusterConfigSave::NAMES),
        "Valkey: whether that file must be saved.";
    cluster_port: u16 = 0, "cluster-port" [], FIXED KEPT PORT,
        "The port between nodes; 0 means 10000 above `port`.";
    cluster_node_timeout: u64 = 15_000, "cluster-node-timeout" [], LIVE KEPT int(0, I64),
        "Milliseconds after which a silent node has failed.";
    cluster_ping_interval: u64 = 0, "cluster-ping-interval" [], HIDDEN KEPT int(0, I64),
        "Milliseconds between pings of nodes; 0 leaves the choice to the server.";
    cluster_migration_barrier: u32 = 1, "cluster-migration-barrier" [], LIVE KEPT int(0, I32),
        "Replicas that a primary keeps when others need one.";
    cluster_allow_replica_migration: bool = true, "cluster-allow-replica-migration" [],
        LIVE KEPT Kind::Bool,
        "Let replicas move to primaries that have none.";
    cluster_replica_validity_factor: u32 = 10, "cluster-replica-validity-factor"
        ["cluster-slave-validity-factor"], LIVE KEPT int(0, I32),
        "How old a replica's data may be for it to take over.";
    cluster_replica_no_failover: bool = false, "cluster-replica-no-failover"
        ["cluster-slave-no-failover"], LIVE KEPT Kind::Bool,
        "Never take over from the primary by itself.";
    cluster_require_full_coverage: bool = true, "cluster-require-full-coverage" [],
        LIVE KEPT Kind::Bool,
        "Refuse commands while any slot has no owner.";
    cluster_allow_reads_when_down: bool = false, "cluster-allow-reads-when-down" [],
        LIVE KEPT Kind::Bool,
        "Answer reads while the cluster is down.";
    cluster_allow_pubsubshard_when_down: bool = true, "cluster-allow-pubsubshard-when-down" [],
        LIVE KEPT Kind::Bool,
        "Serve shard channels while the cluster is down.";
    cluster_link_sendbuf_limit: u64 = 0, "cluster-link-sendbuf-limit" [], LIVE KEPT umem(0, I64),
        "Bytes of unsent output that a link between nodes may have; 0 means no limit.";
    cluster_announce_ip: String = text(""), "cluster-announce-ip" [], LIVE KEPT Kind::Text,
        "The address that others are told.";
    cluster_announce_hostname: String = text(""), "cluster-announce-hostname" [],
        LIVE KEPT Kind::CheckedText(host_name),
        "The host name that others are told.";
    cluster_announce_human_nodename: String = text(""), "cluster-announce-human-nodename" [],
        LIVE KEPT Kind::CheckedText(node_name),
        "A name for logs.";
    cluster_announce_port: u16 = 0, "cluster-announce-port" [], LIVE KEPT PORT,
        "The port that others are told.";
    cluster_announce_bus_port: u16 = 0, "cluster-announce-bus-port" [], LIVE KEPT PORT,
        "The port between nodes that others are told.";
    cluster_announce_tls_port: u16 = 0, "cluster-announce-tls-port" [], LIVE KEPT PORT,
        "The TLS port that others are told.";
    cluster_announce_client_ipv4: String = text(""), "cluster-announce-client-ipv4" [],
        LIVE KEPT Kind::Text,
        "Valkey: the IPv4 address that clients are told.";
    cluster_announce_client_ipv6: String = text(""), "cluster-announce-client-ipv6" [],
        LIVE KEPT Kind::Text,
        "Valkey: the IPv6 address that clients are told.";
    cluster_announce_client_port: u16 = 0, "cluster-announce-client-port" [], LIVE KEPT PORT,
        "Valkey: the port that clients are told.";
    cluster_announce_client_tls_port: u16 = 0, "cluster-announce-client-tls-port" [],
        LIVE KEPT PORT,
        "Valkey: the TLS port that clients are told.";
    cluster_preferred_endpoint_type: EndpointType = EndpointType::Ip,
        "cluster-preferred-endpoint-type" [], LIVE KEPT Kind::Enum(EndpointType::NAMES),
        "What clients are told to connect to.";
    cluster_slot_stats_enabled: bool = false, "cluster-slot-stats-enabled" [],
        LIVE KEPT Kind::Bool,
        "Measure each slot for CLUSTER SLOT-STATS.";
    cluster_compatibility_sample_ratio: u32 = 0, "cluster-compatibility-sample-ratio" [],
        LIVE KEPT int(0, 100),
        "Percent of commands tested for whether a cluster would take them.";
    cluster_blacklist_ttl: u32 = 60, "cluster-blacklist-ttl" [], LIVE KEPT int(0, I32),
        "Valkey: seconds for which a forgotten node stays forgotten.";
    cluster_databases: u32 = 1, "cluster-databases" [], FIXED KEPT int(1, I32),
        "Valkey: how many databases a cluster has.";
    cluster_manual_failover_timeout: u32 = 5000, "cluster-manual-failover-timeout" [],
        LIVE KEPT int(1, I32),
        "Valkey: milliseconds after which a manual failover is given up.";
    cluster_slot_migration_log_max_len: u64 = 1000, "cluster-slot-migration-log-max-len" [],
        LIVE KEPT int(0, I64),
        "Valkey: how many finished slot migrations are remembered.";
    slot_migration_max_failover_repl_bytes: i64 = 0, "slot-migration-max-failover-repl-bytes" [],
        LIVE KEPT int(-1, I64),
        "Valkey: bytes that may be on their way when a slot changes hands.";

    // TLS and RDMA.
    tls_port: u16 = 0, "tls-port" [], LIVE KEPT PORT,
        "The port for TLS; 0 turns it off.";
    tls_cert_file: String = text(""), "tls-cert-file" [], LIVE KEPT Kind::Text,
        "The server's certificate.";
    tls_key_file: String = text(""), "tls-key-file" [], LIVE KEPT Kind::Text,
        "The server's private key.";
    tls_key_file_pass: String = text(""), "tls-key-file-pass" [], LIVE KEPT Kind::Text,
        "The password of that key.";
    tls_client_cert_file: String = text(""), "tls-client-cert-file" [], LIVE KEPT Kind::Text,
        "The certificate for outgoing connections.";
    tls_client_key_file: String = text(""), "tls-client-key-file" [], LIVE KEPT Kind::Text,
        "The private key for outgoing connections.";
    tls_client_key_file_pass: String = text(""), "tls-client-key-file-pass" [],
        LIVE KEPT Kind::Text,
        "The password of that key.";
    tls_dh_params_file: String = text(""), "tls-dh-params-file" [], LIVE KEPT Kind::Text,
        "Diffie-Hellman parameters for old clients.";
    tls_ca_cert_file: String = text(""), "tls-ca-cert-file" [], LIVE KEPT Kind::Text,
        "Certificates that are trusted.";
    tls_ca_cert_dir: String = text(""), "tls-ca-cert-dir" [], LIVE KEPT Kind::Text,
        "A directory of certificates that are trusted.";
    tls_auth_clients: TlsAuthClients = TlsAuthClients::Yes, "tls-auth-clients" [],
        LIVE KEPT Kind::Enum(TlsAuthClients::NAMES),
        "Whether clients need a certificate.";
    tls_auth_clients_user: TlsAuthClientsUser = TlsAuthClientsUser::Off,
        "tls-auth-clients-user" [], LIVE KEPT Kind::Enum(TlsAuthClientsUser::NAMES),
        "Valkey: which field of a client's certificate names its user.";
    tls_auto_reload_interval: u32 = 0, "tls-auto-reload-interval" [], LIVE KEPT int(0, I32),
        "Valkey: seconds between looks for new certificates; 0 means never.";
    tls_replication: bool = false, "tls-replication" [], LIVE KEPT Kind::Bool,
        "Connect to the primary with TLS.";
    tls_cluster: bool = false, "tls-cluster" [], LIVE KEPT Kind::Bool,
        "Connect to other nodes with TLS.";
    tls_protocols: String = text(""), "tls-protocols" [], LIVE KEPT Kind::Text,
        "Versions of TLS that are allowed.";
    tls_ciphers: String = text(""), "tls-ciphers" [], LIVE KEPT Kind::Text,
        "Ciphers for TLS 1.2.";
    tls_ciphersuites: String = text(""), "tls-ciphersuites" [], LIVE KEPT Kind::Text,
        "Ciphers for TLS 1.3.";
    tls_prefer_server_ciphers: bool = false, "tls-prefer-server-ciphers" [], LIVE KEPT Kind::Bool,
        "Choose ciphers by the server's order.";
    tls_session_caching: bool = true, "tls-session-caching" [], LIVE KEPT Kind::Bool,
        "Let clients resume a session.";
    tls_session_cache_size: u32 = 20_480, "tls-session-cache-size" [], LIVE KEPT int(0, I32),
        "How many sessions are remembered; 0 means no limit.";
    tls_session_cache_timeout: u32 = 300, "tls-session-cache-timeout" [], LIVE KEPT int(0, I32),
        "Seconds for which a session is remembered.";
    rdma_bind: String = text(""), "rdma-bind" [], FIXED KEPT Kind::Text,
        "Valkey: addresses for RDMA.";
    rdma_port: u16 = 0, "rdma-port" [], LIVE KEPT PORT,
        "Valkey: the port for RDMA; 0 turns it off.";
    rdma_rx_size: u64 = 1 << 20, "rdma-rx-size" [], FIXED KEPT int(64 << 10, 16 << 20),
        "Valkey: bytes of a receive buffer for RDMA.";
    rdma_completion_vector: i32 = -1, "rdma-completion-vector" [], FIXED KEPT int(-1, 1024),
        "Valkey: the completion vector for RDMA.";
}
