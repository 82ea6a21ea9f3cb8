//! Refuses commands that would stop the test, hang it, fill memory, or whose effect is left to
//! chance or to the clock. Mutation can turn any harmless command into one of these, so every
//! command is looked at.

/// Seconds, within which a relative time might pass while the test runs.
const NEAR_SECONDS: i64 = 10_000;

/// Unix seconds too near to today.
const PRESENT_SECONDS: std::ops::RangeInclusive<i64> = 1_500_000_000..=3_000_000_000;

/// Byte and bit offsets from here on cost memory; from `TOO_FAR` on they are refused by the server.
const FAR: i64 = 20_001;
const TOO_FAR_BYTES: i64 = 536_870_912;
const TOO_FAR_BITS: i64 = 4_294_967_296;

/// A negative count, of random members with repeats, beyond this is a huge reply.
const MOST_REPEATS: i64 = -1_000;

/// Blocking for longer, in seconds, would slow the test.
const LONGEST_WAIT: f64 = 0.05;

/// Whether to send these words.
pub(super) fn is_safe(words: &[Vec<u8>]) -> bool {
    let Some(name) = words.first() else { return false };
    let name = upper(name);
    let argument = |index: usize| words.get(index).map(|word| upper(word)).unwrap_or_default();
    let number = |index: usize| words.get(index).and_then(|word| integer(word));
    let one_of = |word: &str, all: &[&str]| all.contains(&word);
    let ok = match name.as_str() {
        "MULTI" | "QUIT" | "SHUTDOWN" | "MONITOR" | "SAVE" | "BGSAVE" | "DEBUG" | "SYNC" => false,
        // Removes members at random, unless it removes all.
        "SPOP" => words.len() > 2 && !number(2).is_some_and(|count| (1..100_000).contains(&count)),
        "SRANDMEMBER" | "HRANDFIELD" | "ZRANDMEMBER" => {
            !number(2).is_some_and(|count| count < MOST_REPEATS && count != i64::MIN)
        }
        // Redis takes memory for as many as are asked for.
        "VRANDMEMBER" => number(2).is_none_or(|count| (MOST_REPEATS..100_000).contains(&count)),
        "VADD" => {
            let has = |option: &str| words.iter().any(|word| upper(word) == option);
            // The word behind the element, which may have any name.
            let components = if argument(2) == "VALUES" { number(3).unwrap_or(0) } else { 0 };
            let mut options = words.iter().skip(5 + components.clamp(0, 10) as usize);
            let plain = options.any(|word| upper(word) == "NOQUANT")
                && !has("Q8")
                && !has("BIN")
                && !has("REDUCE");
            (plain || !words.get(1).is_some_and(|key| key.starts_with(b"vset")))
                && words.iter().all(|word| is_modest(word))
                // Redis forgets to count these.
                && !(has("CAS") && has("SETATTR"))
                // Redis gives a new element empty attributes, and takes those of another away.
                && words.windows(2).all(|pair| upper(&pair[0]) != "SETATTR" || !pair[1].is_empty())
        }
        "VSIM" => words.iter().all(|word| is_modest(word)),
        // Redis cuts the index to 32 bits, so that -2^63 is 0: not to be imitated.
        "LSET" => number(2).is_none_or(|index| i32::try_from(index).is_ok()),
        "SETRANGE" => !number(2).is_some_and(|at| (FAR..TOO_FAR_BYTES).contains(&at)),
        "SETBIT" => !number(2).is_some_and(|at| (FAR..TOO_FAR_BITS).contains(&at)),
        "BITFIELD" => words[1..].iter().all(|word| {
            let digits = word.strip_prefix(b"#").unwrap_or(word);
            !integer(digits).is_some_and(|at| (FAR..TOO_FAR_BITS).contains(&at))
        }),
        "EXPIRE" | "SETEX" | "HEXPIRE" => !number(2).is_some_and(is_near_seconds),
        "PEXPIRE" | "PSETEX" | "HPEXPIRE" => {
            !number(2).is_some_and(|ms| is_near_seconds(ms / 1_000))
        }
        "EXPIREAT" | "HEXPIREAT" => !number(2).is_some_and(|at| PRESENT_SECONDS.contains(&at)),
        "PEXPIREAT" | "HPEXPIREAT" => {
            !number(2).is_some_and(|at| PRESENT_SECONDS.contains(&(at / 1_000)))
        }
        "SET" | "GETEX" | "HSETEX" | "HGETEX" => {
            words.windows(2).all(|pair| is_safe_expiry(&pair[0], &pair[1]))
        }
        "BLPOP" | "BRPOP" | "BZPOPMIN" | "BZPOPMAX" | "BLMOVE" | "BRPOPLPUSH" => {
            words.last().is_none_or(|word| is_short_wait(word))
        }
        "BLMPOP" | "BZMPOP" => words.get(1).is_none_or(|word| is_short_wait(word)),
        // Redis 8.2.3 sends no reply at all to a wrong user name that follows another command in a
        // pipeline.
        "AUTH" => words.len() != 3,
        "HELLO" => !words.iter().any(|word| upper(word) == "AUTH"),
        // A cursor beyond 64 bits makes the next SORT of Redis fail: it leaves `errno` behind.
        "SCAN" | "SSCAN" | "HSCAN" | "ZSCAN" => words.iter().all(|word| integer_digits(word) < 20),
        "WAIT" => number(1).is_none_or(|replicas| replicas <= 0),
        "CLIENT" => match argument(1).as_str() {
            "REPLY" => !one_of(&argument(2), &["ON", "OFF", "SKIP"]),
            "PAUSE" => number(2).is_none_or(|ms| ms <= 0),
            "KILL" => words.len() == 3 || one_of(&argument(2), &["ID", "TYPE"]),
            "LIST" => words.len() > 2,
            // Client-side caching comes later.
            "INFO" | "TRACKING" | "TRACKINGINFO" | "CACHING" => false,
            _ => true,
        },
        "CONFIG" => match argument(1).as_str() {
            "SET" => one_of(&argument(2), &["NOSUCHOPTION", "DATABASES"]) || argument(3) == "ABC",
            "GET" => words[2..].iter().all(|word| !word.iter().any(|byte| b"*?[".contains(byte))),
            "REWRITE" => false,
            _ => true,
        },
        "COMMAND" => match argument(1).as_str() {
            "" | "COUNT" | "DOCS" => false,
            // The order of subcommands differs from run to run.
            // Redis reads a number of keys with `atoi` here.
            "GETKEYS" | "GETKEYSANDFLAGS" => words[2..].iter().all(|word| {
                let starts_as_number = word
                    .trim_ascii_start()
                    .first()
                    .is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+'));
                !starts_as_number || integer(word).is_some_and(|it| i32::try_from(it).is_ok())
            }),
            "INFO" => words.len() > 2 && !words.iter().any(|word| upper(word) == "OBJECT"),
            "LIST" => words.len() > 2,
            _ => true,
        },
        "SORT" | "SORT_RO" => is_stable_sort(&words[1..]),
        _ => true,
    };
    ok && is_safe_lexicographic(&name, words)
}

/// The ASCII uppercase of a word, as names and options compare.
pub(crate) fn upper(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_uppercase()
}

/// An integer as servers accept it, or nearly.
fn integer(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Whether a word of a vector command is no number that Redis fails at: it takes memory for as many
/// components, candidates or results as are announced, ends when that overflows, takes infinity for
/// a component, and a vector whose squares underflow for zero.
fn is_modest(word: &[u8]) -> bool {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.trim().parse::<f64>().ok());
    number.is_none_or(|number| number == 0.0 || (1e-6..1e5).contains(&number.abs()))
}

fn integer_digits(word: &[u8]) -> usize {
    word.iter().filter(|byte| byte.is_ascii_digit()).count()
}

fn is_near_seconds(seconds: i64) -> bool {
    (0..=NEAR_SECONDS).contains(&seconds) && seconds != 0
}

fn is_safe_expiry(option: &[u8], time: &[u8]) -> bool {
    let Some(time) = integer(time) else { return true };
    match upper(option).as_str() {
        "EX" => !is_near_seconds(time),
        "PX" => !(1..=NEAR_SECONDS * 1_000).contains(&time),
        // A key set with a time that is past counts until somebody looks at it.
        "EXAT" => !(1..=*PRESENT_SECONDS.end()).contains(&time),
        "PXAT" => !(1..=*PRESENT_SECONDS.end() * 1_000).contains(&time),
        _ => true,
    }
}

fn is_short_wait(word: &[u8]) -> bool {
    // A hexadecimal float is one to the servers and none to Rust.
    let hexadecimal = upper(word).starts_with("0X") && word != b"0x0.01p0";
    let seconds = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok());
    !hexadecimal && !seconds.is_some_and(|seconds| seconds == 0.0 || seconds > LONGEST_WAIT)
}

/// Whether these words wait without end outside of a transaction.
pub(crate) fn blocks_for_ever(words: &[Vec<u8>]) -> bool {
    let timeout = match upper(&words[0]).as_str() {
        "BLPOP" | "BRPOP" | "BZPOPMIN" | "BZPOPMAX" | "BLMOVE" | "BRPOPLPUSH" => words.last(),
        "BLMPOP" | "BZMPOP" => words.get(1),
        _ => None,
    };
    timeout.is_some_and(|word| word == b"0")
}

/// `ALPHA` with `BY` leaves elements of equal weight in any order, which must not reach a cut or a
/// key.
fn is_stable_sort(words: &[Vec<u8>]) -> bool {
    let has = |option: &str| words.iter().any(|word| upper(word) == option);
    !(has("BY") && has("ALPHA") && (has("LIMIT") || has("STORE")))
}

/// Lexicographic ranges are defined only where all scores are equal: the `zlex` keys, whose scores
/// stay 0.
fn is_safe_lexicographic(name: &str, words: &[Vec<u8>]) -> bool {
    let is_lex = |word: &Vec<u8>| word.starts_with(b"zlex");
    let by_lex = words.iter().any(|word| upper(word) == "BYLEX");
    let source = if name == "ZRANGESTORE" { 2 } else { 1 };
    match name {
        "ZRANGEBYLEX" | "ZREVRANGEBYLEX" | "ZLEXCOUNT" | "ZREMRANGEBYLEX" => {
            words.get(1).is_none_or(is_lex)
        }
        "ZRANGE" | "ZRANGESTORE" if by_lex => {
            words.get(source).is_some_and(is_lex) && (source == 1 || !is_lex(&words[1]))
        }
        "ZADD" if words.iter().any(is_lex) => {
            words.len().is_multiple_of(2)
                && words[2..].chunks(2).all(|pair| pair[0] == b"0")
                && !words[2..].iter().any(is_lex)
        }
        "ZRANGE" | "ZREM" | "COMMAND" | "OBJECT" => true,
        _ => !words.iter().any(is_lex),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::split;

    #[test]
    fn dangerous_commands_are_refused() {
        for line in [
            "SPOP s",
            "spop s 3",
            "SRANDMEMBER s -5000",
            "SETRANGE k 100000000 a",
            "SETBIT k 4294967295 1",
            "BITFIELD k SET u1 #4294967295 1",
            "EXPIRE k 5",
            "PEXPIRE k 5000",
            "EXPIREAT k 1800000000",
            "SET k v eX 5",
            "BLPOP k 0",
            "BLMPOP 1 1 k LEFT",
            "WAIT 1 0",
            "CLIENT REPLY off",
            "CONFIG SET save 1",
            "SORT k BY w* ALPHA LIMIT 0 1",
            "ZRANGEBYLEX zset1 - +",
            "ZADD zlex1 1 a",
            "ZUNIONSTORE zlex1 1 zset1",
            "MULTI",
            "CLIENT KILL SKIPME yes",
            "VADD vset1 VALUES 1 1 a",
            "VADD vset1 VALUES 1 1 a NOQUANT Q8",
            "VADD vset1 VALUES 1 1 NOQUANT",
            "VADD vset1 FP32 abcd NOQUANT",
            "VADD v VALUES 9223372036854775807 1 a",
            "VADD v VALUES 1 inf a",
            "VSIM v ELE a COUNT 4294967296",
            "VRANDMEMBER v -5000",
            "",
        ] {
            assert!(!is_safe(&split(line).expect("balanced")), "{line}");
        }
    }

    #[test]
    fn harmless_commands_pass() {
        for line in [
            "SPOP s 100000",
            "SPOP s 0",
            "SRANDMEMBER s -9223372036854775808",
            "SETRANGE k 536870912 a",
            "EXPIRE k 0",
            "EXPIRE k 1000000",
            "SET k 5",
            "BLPOP k 0.01",
            "BLPOP k",
            "SORT k ALPHA LIMIT 0 1",
            "ZRANGEBYLEX zlex1 - +",
            "ZADD zlex1 0 a 0 b",
            "ZRANGESTORE zset1 zlex1 - + BYLEX",
            "GET",
            "SPOP s x",
            "VADD vset1 VALUES 1 1 a NOQUANT",
            "VADD v VALUES 1 0.5 a",
            "VSIM v ELE a COUNT -1",
        ] {
            assert!(is_safe(&split(line).expect("balanced")), "{line}");
        }
    }
}
