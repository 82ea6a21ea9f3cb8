//! The end of a wait, with the worst timing: one client waits for two keys, and at the same instant
//! one thread pushes an element, one unblocks the client and the client's own thread lets it leave.
//!
//! Exactly one of the three must happen (`blocking.rs`, rule 3), and the element must be either in
//! the reply or in its list, never in both and never in neither.
//!
//! It fails if `BlockedClient::end_with` gives its lock back before it serves, or if nobody looks
//! for a late reply after `stop_waiting` (tried 2026-11-30).

use std::sync::Barrier;
use std::thread;

use kiln_testkit::reply::Reply;

use crate::client::{Ended, Station, server, session, text, texts};
use crate::stress::{Watchdog, from_env};

#[test]
fn a_wait_ends_once_and_loses_no_element() {
    let rounds = from_env("KILN_STRESS_OPS", 500);
    let server = server(3);
    let barrier = Barrier::new(3);
    let watchdog = Watchdog::new(3);
    thread::scope(|scope| {
        let ended = {
            let (server, barrier, watch) = (&server, &barrier, watchdog.log(0));
            scope.spawn(move || {
                let mut station = Station::new(server, 0, 0);
                // The first client has the id 1.
                let mut session = session(server, 0);
                let mut ends = Vec::new();
                for round in 0..rounds {
                    watch.note(|| format!("wait {round}"));
                    let block = "BLPOP waits:a waits:b 0".to_owned();
                    let (_, mut waiting) = station.run(&mut session, &[block]);
                    let kiln_command::Progress::Blocked { waiter, .. } = &waiting else {
                        panic!("both lists are empty")
                    };
                    *session.client.blocked.lock() = Some(waiter.clone());
                    barrier.wait();
                    let end = station.end_wait(&mut session, &mut waiting, true);
                    barrier.wait();
                    let left = station.reply(&mut session, "LPOP waits:b".to_owned());
                    ends.push((end.expect("it left at the latest"), text(&left)));
                }
                ends
            })
        };
        let unblocked = {
            let (server, barrier, watch) = (&server, &barrier, watchdog.log(1));
            scope.spawn(move || {
                let mut station = Station::new(server, 1, 0);
                let mut session = session(server, 1);
                let mut replies = Vec::new();
                for round in 0..rounds {
                    watch.note(|| format!("unblock {round}"));
                    barrier.wait();
                    replies.push(station.reply(&mut session, "CLIENT UNBLOCK 1".to_owned()));
                    barrier.wait();
                }
                replies
            })
        };
        let (server, barrier, watch) = (&server, &barrier, watchdog.log(2));
        scope.spawn(move || {
            let mut station = Station::new(server, 2, 0);
            let mut session = session(server, 2);
            for round in 0..rounds {
                watch.note(|| format!("push {round}"));
                barrier.wait();
                station.reply(&mut session, format!("RPUSH waits:b {round}"));
                barrier.wait();
            }
        });
        watchdog.wait();
        let ends = ended.join().expect("no panic").into_iter();
        let unblocked = unblocked.join().expect("no panic");
        for (round, ((end, left), unblocked)) in ends.zip(unblocked).enumerate() {
            let element = round.to_string();
            let was_unblocked = unblocked == Reply::Integer(1);
            assert_eq!(end == Ended::Unblocked, was_unblocked, "round {round}: {end:?}");
            match end {
                Ended::Served(reply) => {
                    assert_eq!((texts(&reply)[1].as_str(), left.as_str()), (&*element, ""));
                }
                Ended::Unblocked | Ended::Left => assert_eq!(left, element),
            }
        }
    });
}
