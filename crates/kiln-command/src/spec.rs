//! What a command is: one row that holds all there is to know about it.
//!
//! A family lists its rows in a `COMMANDS` slice; everything else is derived from them: arity
//! errors, lock mode and shards, ACL categories, refusal under full memory, journaling, COMMAND
//! INFO and DOCS, docs/commands.md. The handler's form carries flags: [`Run::Read`] gets a shared
//! view and cannot write, [`Run::Write`] an exclusive one.

use kiln_keyspace::{Space, View};
use kiln_resp::{Args, ReplyWriter};

use crate::blocking::Outcome;
use crate::compute::EngineHandler;
use crate::context::Context;
use crate::error::{CommandError, CommandResult};

/// Handler of a command that only reads keys.
pub type ReadHandler = fn(&View<'_>, &Args<'_>, &mut ReplyWriter<'_>) -> CommandResult;
/// Handler of a command that may change keys.
pub type WriteHandler = fn(&mut View<'_>, &Args<'_>, &mut ReplyWriter<'_>) -> CommandResult;
/// Handler of a command that may wait until a key has something for it.
pub type BlockingHandler =
    fn(&mut View<'_>, &Args<'_>, &mut ReplyWriter<'_>) -> Result<Outcome, CommandError>;
/// Handler of a command about the connection or the server.
pub type ConnectionHandler = fn(&mut Context<'_>, &Args<'_>, &mut ReplyWriter<'_>) -> CommandResult;

/// How a command runs, and on what.
#[derive(Clone, Copy)]
pub enum Run {
    /// On a shared view of its keys' shards.
    Read(ReadHandler),
    /// On an exclusive view of its keys' shards.
    Write(WriteHandler),
    /// As `Write`, and may ask to wait.
    Blocking(BlockingHandler),
    /// On the session and the server; keys only through [`Context::with_view`] and its kin.
    Connection(ConnectionHandler),
    /// On an engine that it finds through [`Context::read`] and its kin; see `compute.rs`.
    Engine(EngineHandler),
    /// Not at all: only its subcommands run.
    Container,
}

/// How many words a command takes, its name (and its subcommand's) included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity(i16);

impl Arity {
    /// Exactly `count` words.
    pub const fn exactly(count: i16) -> Self {
        Self(count)
    }

    /// `count` words or more.
    pub const fn at_least(count: i16) -> Self {
        Self(-count)
    }

    /// Whether `count` words will do.
    #[inline]
    pub fn admits(self, count: usize) -> bool {
        let want = usize::from(self.0.unsigned_abs());
        if self.0 >= 0 { count == want } else { count >= want }
    }

    /// Redis's form: negative for "at least".
    pub const fn wire(self) -> i64 {
        self.0 as i64
    }
}

macro_rules! bit_set {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$flag_doc:meta])* $flag:ident = $bit:expr, $text:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name(u32);

        impl $name {
            /// No flag.
            pub const NONE: Self = Self(0);
            $($(#[$flag_doc])* pub const $flag: Self = Self(1 << $bit);)*

            /// All flags of both.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Whether every flag of `other` is set.
            #[inline]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether any flag of `other` is set.
            #[inline]
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// The flags' wire names, in Redis's order.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                const ALL: &[($name, &str)] = &[$(($name::$flag, $text)),*];
                ALL.iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| *name)
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }
    };
}

bit_set! {
    /// Properties of a command, under the names that COMMAND INFO shows.
    CommandFlags {
        /// Changes data.
        WRITE = 0, "write";
        /// Only reads data.
        READONLY = 1, "readonly";
        /// Refused when memory is full.
        DENYOOM = 2, "denyoom";
        /// A module brings it to Redis.
        MODULE = 3, "module";
        /// For operators.
        ADMIN = 4, "admin";
        /// Publish/subscribe.
        PUBSUB = 5, "pubsub";
        /// Not for scripts.
        NOSCRIPT = 6, "noscript";
        /// May wait.
        BLOCKING = 8, "blocking";
        /// Allowed while data is loaded.
        LOADING = 9, "loading";
        /// Allowed on a replica with old data.
        STALE = 10, "stale";
        /// Not shown by MONITOR.
        SKIP_MONITOR = 11, "skip_monitor";
        /// Not in the slow log.
        SKIP_SLOWLOG = 12, "skip_slowlog";
        /// Implies ASKING.
        ASKING = 13, "asking";
        /// Constant or logarithmic time.
        FAST = 14, "fast";
        /// Allowed before AUTH.
        NO_AUTH = 15, "no_auth";
        /// May do without keys although it can have some.
        NO_MANDATORY_KEYS = 18, "no_mandatory_keys";
        /// Allowed while a script is stuck.
        ALLOW_BUSY = 19, "allow_busy";
        /// Not while an asynchronous load replaces the data.
        NO_ASYNC_LOADING = 20, "no_async_loading";
        /// Not inside MULTI.
        NO_MULTI = 21, "no_multi";
        /// Keys are not at fixed places.
        MOVABLEKEYS = 22, "movablekeys";
    }
}

bit_set! {
    /// What a command does to the keys of one [`KeySpec`].
    KeyFlags {
        /// Reads only.
        RO = 0, "RO";
        /// Reads and changes.
        RW = 1, "RW";
        /// Overwrites.
        OW = 2, "OW";
        /// Removes.
        RM = 3, "RM";
        /// Returns or copies the value.
        ACCESS = 4, "access";
        /// Changes depend on the old value.
        UPDATE = 5, "update";
        /// Only adds.
        INSERT = 6, "insert";
        /// Removes explicitly.
        DELETE = 7, "delete";
        /// Not a key although routed like one.
        NOT_KEY = 8, "not_key";
        /// The spec misses some keys.
        INCOMPLETE = 9, "incomplete";
        /// What is done depends on other arguments.
        VARIABLE_FLAGS = 10, "variable_flags";
    }
}

bit_set! {
    /// ACL categories; the ones that follow from flags are added by [`CommandSpec::acl`].
    AclCategories {
        /// Generic key commands.
        KEYSPACE = 0, "keyspace";
        /// Reads.
        READ = 1, "read";
        /// Writes.
        WRITE = 2, "write";
        /// Sets.
        SET = 3, "set";
        /// Sorted sets.
        SORTEDSET = 4, "sortedset";
        /// Lists.
        LIST = 5, "list";
        /// Hashes.
        HASH = 6, "hash";
        /// Strings.
        STRING = 7, "string";
        /// Bitmaps.
        BITMAP = 8, "bitmap";
        /// HyperLogLog.
        HYPERLOGLOG = 9, "hyperloglog";
        /// Geo.
        GEO = 10, "geo";
        /// Streams.
        STREAM = 11, "stream";
        /// Publish/subscribe.
        PUBSUB = 12, "pubsub";
        /// Operators.
        ADMIN = 13, "admin";
        /// Fast.
        FAST = 14, "fast";
        /// Slow.
        SLOW = 15, "slow";
        /// May wait.
        BLOCKING = 16, "blocking";
        /// Harmful in the wrong hands.
        DANGEROUS = 17, "dangerous";
        /// The connection itself.
        CONNECTION = 18, "connection";
        /// Transactions.
        TRANSACTION = 19, "transaction";
        /// Scripts.
        SCRIPTING = 20, "scripting";
    }
}

/// The group that documentation files a command under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the groups")]
pub enum Group {
    Bitmap,
    Cluster,
    Connection,
    Generic,
    Hash,
    HyperLogLog,
    List,
    Server,
    Set,
    SortedSet,
    String,
    Tag,
    Transactions,
    VectorIndex,
    VectorSet,
}

impl Group {
    /// The wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Cluster => "cluster",
            Self::Connection => "connection",
            Self::Generic => "generic",
            Self::Hash => "hash",
            Self::HyperLogLog => "hyperloglog",
            Self::List => "list",
            Self::Server => "server",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::String => "string",
            Self::Tag => "tag",
            Self::Transactions => "transactions",
            Self::VectorIndex => "vector-index",
            Self::VectorSet => "vector-set",
        }
    }

    /// The ACL category that every command of the group has.
    const fn acl(self) -> AclCategories {
        match self {
            Self::Bitmap => AclCategories::BITMAP,
            Self::Connection => AclCategories::CONNECTION,
            Self::Hash => AclCategories::HASH,
            Self::HyperLogLog => AclCategories::HYPERLOGLOG,
            Self::List => AclCategories::LIST,
            Self::Set => AclCategories::SET,
            Self::SortedSet => AclCategories::SORTEDSET,
            Self::String => AclCategories::STRING,
            Self::Transactions => AclCategories::TRANSACTION,
            // SORT and WAIT are generic too, but not in @keyspace: the rows say who is.
            Self::Cluster
            | Self::Generic
            | Self::Server
            | Self::Tag
            | Self::VectorIndex
            | Self::VectorSet => AclCategories::NONE,
        }
    }
}

/// Where the search for keys begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginSearch {
    /// At this word.
    Index(i16),
    /// Behind this word, looked for from `from` on (negative: from the end, backwards).
    Keyword(&'static str, i16),
    /// Not to be told without the handler's knowledge.
    Unknown,
}

/// How keys lie from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindKeys {
    /// To `last` (relative to the begin; negative: from the end), every `step` words; `limit`
    /// divides the rest of the words when `last` is -1.
    #[expect(missing_docs, reason = "described above, named as in COMMAND INFO")]
    Range { last: i16, step: i16, limit: i16 },
    /// As many as the word at `keynum` says, from `first` on (both relative to the begin).
    #[expect(missing_docs, reason = "described above, named as in COMMAND INFO")]
    KeyNum { keynum: i16, first: i16, step: i16 },
    /// Not to be told without the handler's knowledge.
    Unknown,
}

/// One group of keys of a command.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// Where the search begins.
    pub begin: BeginSearch,
    /// How the keys lie.
    pub find: FindKeys,
    /// What is done to them.
    pub flags: KeyFlags,
}

impl KeySpec {
    /// The key at word `index`.
    pub const fn at(index: i16, flags: KeyFlags) -> Self {
        Self::range(index, 0, 1, flags)
    }

    /// Keys from word `index` to `last`, every `step` words.
    pub const fn range(index: i16, last: i16, step: i16, flags: KeyFlags) -> Self {
        let find = FindKeys::Range { last, step, limit: 0 };
        Self { begin: BeginSearch::Index(index), find, flags }
    }

    /// As many keys as word `index` says, right behind it.
    pub const fn keynum(index: i16, flags: KeyFlags) -> Self {
        let find = FindKeys::KeyNum { keynum: 0, first: 1, step: 1 };
        Self { begin: BeginSearch::Index(index), find, flags }
    }

    /// The words at which this spec finds keys, as `(first, last, step)`; `None` if the words
    /// do not fit the spec.
    pub fn positions(&self, args: &Args<'_>) -> Option<(usize, usize, usize)> {
        let len = args.len() as i64;
        let begin = match self.begin {
            BeginSearch::Index(index) => i64::from(index),
            BeginSearch::Keyword(word, from) => {
                let is_word =
                    |at: &i64| args.get(*at as usize).eq_ignore_ascii_case(word.as_bytes());
                let found = if from >= 0 {
                    (i64::from(from)..len).find(is_word)
                } else {
                    (1..=len + i64::from(from)).rev().find(is_word)
                };
                found? + 1
            }
            BeginSearch::Unknown => return None,
        };
        let (first, last, step) = match self.find {
            FindKeys::Range { last, step, limit } => {
                let last = match last {
                    0.. => begin + i64::from(last),
                    _ if limit <= 1 => len + i64::from(last),
                    // For -1: the keys are the first 1/limit of the remaining words.
                    _ => begin + (len - begin) / i64::from(limit) - 1,
                };
                (begin, last, i64::from(step))
            }
            FindKeys::KeyNum { keynum, first, step } => {
                let count = args.try_get((begin + i64::from(keynum)) as usize)?;
                let count = kiln_base::number::parse_i64(count).filter(|count| *count >= 0)?;
                let first = begin + i64::from(first);
                let step = i64::from(step);
                let last = count.checked_mul(step)?.checked_sub(step)?.checked_add(first)?;
                (first, last, step)
            }
            FindKeys::Unknown => return None,
        };
        (last < len && first < len).then(|| (first as usize, (last + 1) as usize, step as usize))
    }
}

/// Shows the index and flags of every key to the closure.
pub type KeyFinder = fn(&Args<'_>, &mut dyn FnMut(usize, KeyFlags));

/// What is journaled for a command that changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// The command as it was sent: its result depends on the data alone.
    AsSent,
    /// What the handler gave to [`View::journal`].
    ByHandler,
}

/// One command: the row of its family's table.
#[derive(Clone, Copy)]
pub struct CommandSpec {
    /// Name in upper case; a subcommand is `CONTAINER|SUBCOMMAND`.
    pub name: &'static str,
    /// How many words it takes.
    pub arity: Arity,
    /// The handler.
    pub run: Run,
    /// Properties that the handler's form does not tell.
    pub flags: CommandFlags,
    /// ACL categories that neither group nor flags tell.
    pub categories: AclCategories,
    /// The documentation group.
    pub group: Group,
    /// Where its keys are.
    pub keys: &'static [KeySpec],
    /// Finds the keys where `keys` cannot tell all of them, and is then only for COMMAND INFO.
    pub key_finder: Option<KeyFinder>,
    /// Whether its second word may name a subcommand.
    pub has_subcommands: bool,
    /// Whether these words may touch keys beyond `keys`, so that all shards must be held.
    pub touches_all: Option<fn(&Args<'_>) -> bool>,
    /// The hidden space that its keys are names in; else they are keys of the session's database.
    /// Only for [`Run::Engine`].
    pub space: Option<Space>,
    /// What is journaled.
    pub journal: Journal,
    /// The version of Redis that brought it.
    pub since: &'static str,
    /// Cost in big-O notation.
    pub complexity: &'static str,
    /// One sentence for COMMAND DOCS.
    pub summary: &'static str,
    /// The words after the name, in the notation of the Redis documentation.
    pub syntax: &'static str,
}

impl CommandSpec {
    const fn new(name: &'static str, arity: Arity, run: Run, flags: CommandFlags) -> Self {
        Self {
            name,
            arity,
            run,
            flags,
            categories: AclCategories::NONE,
            group: Group::Generic,
            keys: &[],
            key_finder: None,
            has_subcommands: false,
            touches_all: None,
            space: None,
            journal: Journal::AsSent,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "",
            syntax: "",
        }
    }

    /// A command that only reads keys.
    pub const fn read(name: &'static str, arity: Arity, handler: ReadHandler) -> Self {
        Self::new(name, arity, Run::Read(handler), CommandFlags::READONLY)
    }

    /// A command that changes keys.
    pub const fn write(name: &'static str, arity: Arity, handler: WriteHandler) -> Self {
        Self::new(name, arity, Run::Write(handler), CommandFlags::WRITE)
    }

    /// A command that changes keys and may wait for one.
    pub const fn blocking(name: &'static str, arity: Arity, handler: BlockingHandler) -> Self {
        let flags = CommandFlags::WRITE.union(CommandFlags::BLOCKING);
        Self::new(name, arity, Run::Blocking(handler), flags)
    }

    /// A command about the connection or the server.
    pub const fn connection(name: &'static str, arity: Arity, handler: ConnectionHandler) -> Self {
        Self::new(name, arity, Run::Connection(handler), CommandFlags::NONE)
    }

    /// A command that only reads engines.
    pub const fn engine_read(name: &'static str, arity: Arity, handler: EngineHandler) -> Self {
        Self::new(name, arity, Run::Engine(handler), CommandFlags::READONLY)
    }

    /// A command that changes engines.
    pub const fn engine_write(name: &'static str, arity: Arity, handler: EngineHandler) -> Self {
        Self::new(name, arity, Run::Engine(handler), CommandFlags::WRITE)
    }

    /// A command that only has subcommands.
    pub const fn container(name: &'static str) -> Self {
        Self::new(name, Arity::at_least(2), Run::Container, CommandFlags::NONE).with_subcommands()
    }

    /// A command that has subcommands, and runs itself when it stands alone.
    #[must_use]
    pub const fn with_subcommands(mut self) -> Self {
        self.has_subcommands = true;
        self
    }

    /// Adds flags.
    #[must_use]
    pub const fn flags(mut self, flags: CommandFlags) -> Self {
        self.flags = self.flags.union(flags);
        self
    }

    /// Adds ACL categories.
    #[must_use]
    pub const fn categories(mut self, categories: AclCategories) -> Self {
        self.categories = self.categories.union(categories);
        self
    }

    /// Sets the documentation group.
    #[must_use]
    pub const fn group(mut self, group: Group) -> Self {
        self.group = group;
        self
    }

    /// Sets where the keys are.
    #[must_use]
    pub const fn keys(mut self, keys: &'static [KeySpec]) -> Self {
        self.keys = keys;
        self
    }

    /// Sets how keys are found that the specs cannot tell.
    #[must_use]
    pub const fn key_finder(mut self, find: KeyFinder) -> Self {
        self.key_finder = Some(find);
        self
    }

    /// Says which words touch keys beyond the specs.
    #[must_use]
    pub const fn touches_all(mut self, test: fn(&Args<'_>) -> bool) -> Self {
        self.touches_all = Some(test);
        self
    }

    /// Sets the hidden space of its keys.
    #[must_use]
    pub const fn space(mut self, space: Space) -> Self {
        self.space = Some(space);
        self
    }

    /// The handler journals its effects itself.
    #[must_use]
    pub const fn journal_by_handler(mut self) -> Self {
        self.journal = Journal::ByHandler;
        self
    }

    /// Sets version, cost, words and summary for the documentation.
    #[must_use]
    pub const fn docs(
        mut self,
        since: &'static str,
        complexity: &'static str,
        syntax: &'static str,
        summary: &'static str,
    ) -> Self {
        self.since = since;
        self.complexity = complexity;
        self.syntax = syntax;
        self.summary = summary;
        self
    }

    /// Whether it may change data.
    #[inline]
    pub const fn is_write(&self) -> bool {
        self.flags.contains(CommandFlags::WRITE)
    }

    /// The container's name, if this is a subcommand.
    pub fn container_name(&self) -> Option<&'static str> {
        self.name.split_once('|').map(|(container, _)| container)
    }

    /// All ACL categories, those that follow from group and flags included.
    pub const fn acl(&self) -> AclCategories {
        // Whoever may use a group still gets nothing from a container by itself.
        let of_group = match self.run {
            Run::Container => AclCategories::NONE,
            _ => self.group.acl(),
        };
        let mut acl = self.categories.union(of_group);
        let implied = [
            (CommandFlags::WRITE, AclCategories::WRITE),
            (CommandFlags::ADMIN, AclCategories::ADMIN.union(AclCategories::DANGEROUS)),
            (CommandFlags::PUBSUB, AclCategories::PUBSUB),
            (CommandFlags::FAST, AclCategories::FAST),
            (CommandFlags::BLOCKING, AclCategories::BLOCKING),
        ];
        let mut at = 0;
        while at < implied.len() {
            if self.flags.contains(implied[at].0) {
                acl = acl.union(implied[at].1);
            }
            at += 1;
        }
        // Redis: @read is for commands that read keys, not for those about scripts.
        if self.flags.contains(CommandFlags::READONLY) && !acl.contains(AclCategories::SCRIPTING) {
            acl = acl.union(AclCategories::READ);
        }
        if !self.flags.contains(CommandFlags::FAST) {
            acl = acl.union(AclCategories::SLOW);
        }
        acl
    }

    /// Calls `visit` with the index and flags of every key among `args`. Says whether all specs
    /// could be applied; what an invalid command has instead of keys is passed over.
    pub fn for_each_key(&self, args: &Args<'_>, mut visit: impl FnMut(usize, KeyFlags)) -> bool {
        if let Some(find) = self.key_finder {
            find(args, &mut visit);
            return true;
        }
        let mut complete = true;
        for spec in self.keys {
            let Some((first, end, step)) = spec.positions(args) else {
                complete = false;
                continue;
            };
            for index in (first..end).step_by(step.max(1)) {
                visit(index, spec.flags);
            }
        }
        complete
    }
}

#[cfg(test)]
mod tests {
    use kiln_resp::OwnedArgs;

    use super::{Arity, BeginSearch, FindKeys, KeyFlags, KeySpec};

    fn positions(spec: KeySpec, line: &str) -> Vec<usize> {
        let owned = OwnedArgs::new(line.split(' ').map(str::as_bytes));
        let Some((first, end, step)) = spec.positions(&owned.args()) else { return vec![] };
        (first..end).step_by(step).collect()
    }

    #[test]
    fn keys_are_found_by_index_range_count_and_keyword() {
        let ro = KeyFlags::RO;
        assert_eq!(positions(KeySpec::at(1, ro), "GET k"), [1]);
        assert_eq!(positions(KeySpec::range(1, -1, 1, ro), "DEL a b c"), [1, 2, 3]);
        assert_eq!(positions(KeySpec::range(1, -1, 2, ro), "MSET a 1 b 2"), [1, 3]);
        assert_eq!(positions(KeySpec::range(1, -2, 1, ro), "BLPOP a b 0"), [1, 2]);
        assert_eq!(positions(KeySpec::keynum(1, ro), "SINTERCARD 2 a b LIMIT 1"), [2, 3]);
        assert_eq!(positions(KeySpec::keynum(1, ro), "SINTERCARD 9 a b"), [0; 0]);
        assert_eq!(positions(KeySpec::keynum(1, ro), "SINTERCARD x a b"), [0; 0]);
        for count in i64::MAX - 4..=i64::MAX {
            let line = format!("SINTERCARD {count} a b");
            assert_eq!(positions(KeySpec::keynum(1, ro), &line), [0; 0]);
        }
        let streams = KeySpec {
            begin: BeginSearch::Keyword("STREAMS", 1),
            find: FindKeys::Range { last: -1, step: 1, limit: 2 },
            flags: ro,
        };
        assert_eq!(positions(streams, "XREAD COUNT 2 STREAMS a b 0 0"), [4, 5]);
    }

    #[test]
    fn arity_is_exact_or_a_minimum() {
        assert!(Arity::exactly(2).admits(2) && !Arity::exactly(2).admits(3));
        assert!(Arity::at_least(2).admits(3) && !Arity::at_least(2).admits(1));
    }
}
