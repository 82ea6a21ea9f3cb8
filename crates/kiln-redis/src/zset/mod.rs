//! Sorted sets: ZADD, ZRANGE, ZUNION and friends.
//!
//! ```text
//! add       ZADD ZINCRBY                        read      ZCARD ZSCORE ZRANK ZCOUNT … ZRANDMEMBER
//! remove    ZREM ZREMRANGEBY…                   range     ZRANGE and its older forms, ZRANGESTORE
//! pop       ZPOP… ZMPOP BZPOP… BZMPOP           combine   ZUNION ZINTER ZDIFF, their STOREs, ZINTERCARD
//! bounds    ends of ranges, ranks               elements  how members and scores are written
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
