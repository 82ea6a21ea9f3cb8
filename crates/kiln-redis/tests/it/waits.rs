//! Waits with the worst timing: what `blocking.rs` promises, one instant at a time.
//!
//! Verified to fail (2026-11-30) when a rule is broken: rule 1 with the hold given up between the
//! look and the queue, rule 2 without the second hold for waiters that need other shards, rule 3
//! with `BlockedClient::end_with` serving without its lock, rule 5 without the look for a late
//! reply after `stop_waiting`.

use std::sync::Barrier;
use std::thread;

use kiln_command::Progress;
use kiln_testkit::reply::Reply;

use crate::client::{Ended, Station, server, session, text, texts};
use crate::stress::{Watchdog, from_env};

/// A push at the very moment of the wait: it serves the client before it replies, whichever of
/// the client's shards it holds itself.
#[test]
fn no_push_slips_between_the_look_and_the_wait() {
    let rounds = from_env("KILN_STRESS_OPS", 1_000);
    let server = server(2);
    let barrier = Barrier::new(2);
    let watchdog = Watchdog::new(2);
    thread::scope(|scope| {
        for index in 0..2 {
            let (server, barrier, log) = (&server, &barrier, watchdog.log(index));
            scope.spawn(move || {
                let mut station = Station::new(server, index, 0);
                let mut session = session(server, index);
                let mut served = Vec::new();
                for round in 0..rounds {
                    log.note(|| format!("round {round}"));
                    barrier.wait();
                    if index == 1 {
                        station.reply(&mut session, format!("RPUSH waits:b {round}"));
                        barrier.wait();
                        continue;
                    }
                    let block = "BLPOP waits:a waits:b 0".to_owned();
                    let (mut replies, mut progress) = station.run(&mut session, &[block]);
                    barrier.wait();
                    let reply = match progress {
                        Progress::Done => replies.pop(),
                        _ => match station.end_wait(&mut session, &mut progress, false) {
                            Some(Ended::Served(reply)) => Some(reply),
                            _ => None,
                        },
                    };
                    served.push(reply.map(|reply| text(&reply.as_elements().expect("a pair")[1])));
                }
                // Only now: a thread that panics earlier leaves the other at the barrier.
                for (round, element) in served.into_iter().enumerate() {
                    assert_eq!(element, Some(round.to_string()));
                }
            });
        }
        watchdog.wait();
    });
}

/// At the same instant one thread pushes an element, one unblocks the client, and the client's
/// own thread lets it leave: exactly one of the three happens, and the element is either in the
/// reply or in its list.
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
                    let Progress::Blocked { waiter, .. } = &waiting else {
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
