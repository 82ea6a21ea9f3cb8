//! How elements of a sorted set are written: members alone, or with their scores, which are a flat
//! array to a RESP2 client and an array of pairs to a RESP3 client.

use kiln_command::{Protocol, ReplyWriter};
use kiln_data::zset::MemberRef;

/// Writes `elements` as one array, each member with its score if `with_scores`.
pub(super) fn write_elements<'a>(
    reply: &mut ReplyWriter<'_>,
    elements: impl ExactSizeIterator<Item = (MemberRef<'a>, f64)>,
    with_scores: bool,
) {
    if with_scores {
        write_pairs_header(reply, elements.len());
        elements.for_each(|(member, score)| write_pair(reply, &member, score));
    } else {
        reply.array(elements.len());
        elements.for_each(|(member, _)| reply.bulk(&member));
    }
}

/// The header of an array of `count` elements with scores; [`write_pair`] writes each.
pub(super) fn write_pairs_header(reply: &mut ReplyWriter<'_>, count: usize) {
    reply.array(match reply.protocol() {
        Protocol::Resp2 => 2 * count,
        Protocol::Resp3 => count,
    });
}

/// One element of such an array.
pub(super) fn write_pair(reply: &mut ReplyWriter<'_>, member: &[u8], score: f64) {
    if reply.protocol() == Protocol::Resp3 {
        reply.array(2);
    }
    reply.bulk(member);
    reply.double(score);
}
