//! The parser's main property: how the network cuts the input changes nothing.
//!
//! Used by the property tests here and by the fuzz target `fuzz/fuzz_targets/resp.rs`.

use kiln_resp::{Batch, Parser, ParserLimits};

/// The commands of an input, and the error that ended it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Transcript {
    pub(crate) commands: Vec<Vec<Vec<u8>>>,
    pub(crate) error: Option<String>,
    /// Bytes that belong to no complete command.
    pub(crate) rest: usize,
}

/// Feeds `input` to a parser as a connection does, in the pieces that `cuts` make: ascending
/// offsets. `max_commands` is what the connection takes at a time.
pub(crate) fn transcript(
    input: &[u8],
    cuts: impl IntoIterator<Item = usize>,
    limits: &ParserLimits,
    max_commands: usize,
) -> Transcript {
    let (mut parser, mut batch) = (Parser::default(), Batch::default());
    let mut result = Transcript::default();
    let mut buf = Vec::new();
    let mut fed = 0;
    for cut in cuts.into_iter().chain([input.len()]) {
        let cut = cut.clamp(fed, input.len());
        buf.extend_from_slice(&input[fed..cut]);
        fed = cut;
        loop {
            let parsed = parser.parse(&mut buf, limits, max_commands, &mut batch);
            let commands = (0..batch.len())
                .map(|index| batch.args(index, &buf).iter().map(Vec::from).collect());
            result.commands.extend(commands);
            assert!(batch.len() <= max_commands);
            assert!(batch.is_empty() || batch.end_of(batch.len() - 1) <= batch.consumed());
            if let Err(error) = parsed {
                result.error = Some(error.to_string());
                return result;
            }
            buf.drain(..batch.consumed());
            let full_batch = batch.len() == max_commands;
            assert!(parser.wanted() == 0 || parser.wanted() > buf.len() || full_batch);
            if !full_batch {
                break;
            }
        }
    }
    result.rest = buf.len();
    result
}

/// Panics unless `input` means the same whole and in pieces. The pieces follow from `seed`; some
/// are single bytes, so that every kind of boundary is hit.
pub(crate) fn check(input: &[u8], seed: u64) {
    for limits in [
        ParserLimits::default(),
        ParserLimits {
            max_inline: 16,
            max_bulk: 100,
            max_multibulk: 20,
            ..ParserLimits::default()
        },
        ParserLimits { unauthenticated: true, ..ParserLimits::default() },
    ] {
        let whole = transcript(input, [], &limits, usize::MAX);
        assert_eq!(whole, transcript(input, 0..input.len(), &limits, usize::MAX), "single bytes");
        assert_eq!(whole, transcript(input, [], &limits, 1), "one command at a time");
        let mut state = seed;
        let cuts = std::iter::successors(Some(0), |cut| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let step = (state >> 33) as usize % (1 << (state >> 61));
            Some(cut + step + 1)
        });
        let cuts = cuts.take_while(|&cut| cut < input.len());
        assert_eq!(whole, transcript(input, cuts, &limits, 3), "pieces of seed {seed}");
    }
}
