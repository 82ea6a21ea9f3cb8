//! Sorted sets: ZADD, ZRANGE, ZUNION and friends.
//!
//! ```text
//! add       ZADD, ZINCRBY
//! remove    ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX
//! pop       ZPOPMIN, ZPOPMAX, ZMPOP and their waiting forms
//! read      ZCARD, ZSCORE, ZMSCORE, ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT, ZRANDMEMBER
//! range     ZRANGE and its older forms, ZRANGESTORE
//! combine   ZUNION, ZINTER, ZDIFF, their STORE forms, ZINTERCARD
//! bounds    the ends of ranges          elements    how members and scores are written
//! ```

mod add;
mod bounds;
mod combine;
mod elements;
mod pop;
mod range;
mod read;
mod remove;

use kiln_command::CommandSpec;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[
    add::COMMANDS,
    combine::COMMANDS,
    pop::COMMANDS,
    range::COMMANDS,
    read::COMMANDS,
    remove::COMMANDS,
];
