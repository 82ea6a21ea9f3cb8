//! What can happen to a key, under the names that keyspace notifications use.

/// The classes of `notify-keyspace-events`, one bit each; the letter is Redis's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventClass(pub u32);

impl EventClass {
    /// `g`: DEL, EXPIRE, RENAME, …
    pub const GENERIC: Self = Self(1 << 2);
    /// `$`
    pub const STRING: Self = Self(1 << 3);
    /// `l`
    pub const LIST: Self = Self(1 << 4);
    /// `s`
    pub const SET: Self = Self(1 << 5);
    /// `h`
    pub const HASH: Self = Self(1 << 6);
    /// `z`
    pub const SORTED_SET: Self = Self(1 << 7);
    /// `x`
    pub const EXPIRED: Self = Self(1 << 8);
    /// `e`
    pub const EVICTED: Self = Self(1 << 9);
    /// `t`
    pub const STREAM: Self = Self(1 << 10);
    /// `n`
    pub const NEW: Self = Self(1 << 13);
}

macro_rules! events {
    ($($variant:ident = $name:literal, $class:ident;)*) => {
        /// One kind of change to a key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Event {
            /// The name that subscribers see.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The class that `notify-keyspace-events` switches on.
            pub fn class(self) -> EventClass {
                match self { $(Self::$variant => EventClass::$class,)* }
            }
        }
    };
}

events! {
    Append = "append", STRING;
    CopyTo = "copy_to", GENERIC;
    Del = "del", GENERIC;
    Evicted = "evicted", EVICTED;
    Expire = "expire", GENERIC;
    Expired = "expired", EXPIRED;
    HDel = "hdel", HASH;
    HExpire = "hexpire", HASH;
    HExpired = "hexpired", HASH;
    HIncrBy = "hincrby", HASH;
    HIncrByFloat = "hincrbyfloat", HASH;
    HPersist = "hpersist", HASH;
    HSet = "hset", HASH;
    IncrBy = "incrby", STRING;
    IncrByFloat = "incrbyfloat", STRING;
    LInsert = "linsert", LIST;
    LPop = "lpop", LIST;
    LPush = "lpush", LIST;
    LRem = "lrem", LIST;
    LSet = "lset", LIST;
    LTrim = "ltrim", LIST;
    MoveFrom = "move_from", GENERIC;
    MoveTo = "move_to", GENERIC;
    New = "new", NEW;
    Persist = "persist", GENERIC;
    PfAdd = "pfadd", STRING;
    RenameFrom = "rename_from", GENERIC;
    RenameTo = "rename_to", GENERIC;
    Restore = "restore", GENERIC;
    RPop = "rpop", LIST;
    RPush = "rpush", LIST;
    SAdd = "sadd", SET;
    SDiffStore = "sdiffstore", SET;
    Set = "set", STRING;
    SetBit = "setbit", STRING;
    SetRange = "setrange", STRING;
    SInterStore = "sinterstore", SET;
    SortStore = "sortstore", LIST;
    SPop = "spop", SET;
    SRem = "srem", SET;
    SUnionStore = "sunionstore", SET;
    ZAdd = "zadd", SORTED_SET;
    ZDiffStore = "zdiffstore", SORTED_SET;
    ZIncr = "zincr", SORTED_SET;
    ZInterStore = "zinterstore", SORTED_SET;
    ZPopMax = "zpopmax", SORTED_SET;
    ZPopMin = "zpopmin", SORTED_SET;
    ZRangeStore = "zrangestore", SORTED_SET;
    ZRem = "zrem", SORTED_SET;
    ZRemRangeByLex = "zremrangebylex", SORTED_SET;
    ZRemRangeByRank = "zremrangebyrank", SORTED_SET;
    ZRemRangeByScore = "zremrangebyscore", SORTED_SET;
    ZUnionStore = "zunionstore", SORTED_SET;
}
