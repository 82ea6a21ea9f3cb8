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

#[cfg(test)]
pub(super) mod tests {
    use kiln_testkit::reply::Reply;

    use crate::testkit::TestServer;

    /// What `server` replies to a command that a property test has put together.
    pub(in crate::zset) fn reply(server: &mut TestServer, words: &[String]) -> Reply {
        let words: Vec<_> = words.iter().map(|word| word.clone().into_bytes()).collect();
        server.reply(&words)
    }

    #[test]
    fn scores_are_flat_in_resp2_and_in_pairs_in_resp3() {
        let mut server = crate::testkit::server();
        let mut text = |line: &str| {
            let words: Vec<_> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            server.run(&words).escape_ascii().to_string()
        };
        text("ZADD z 1 a 2.5 b");
        let flat = r"*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$3\r\n2.5\r\n";
        assert_eq!(text("ZRANGE z 0 -1 WITHSCORES"), flat);
        text("HELLO 3");
        let pairs = r"*2\r\n*2\r\n$1\r\na\r\n,1\r\n*2\r\n$1\r\nb\r\n,2.5\r\n";
        for command in ["ZRANGE z 0 -1", "ZUNION 1 z", "ZRANDMEMBER z 5"] {
            assert_eq!(text(&format!("{command} WITHSCORES")), pairs, "{command}");
        }
        assert_eq!(text("ZMPOP 1 z MIN COUNT 2"), format!(r"*2\r\n$1\r\nz\r\n{pairs}"));
        text("ZADD z 1 a 2.5 b");
        assert_eq!(text("ZPOPMIN z 2"), pairs);
        text("ZADD z 1 a");
        assert_eq!(text("ZPOPMIN z"), r"*2\r\n$1\r\na\r\n,1\r\n");
    }
}
