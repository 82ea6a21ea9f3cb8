//! Transcripts against these families beside Redis's own, in-process.

use kiln_testkit::in_process;

/// Runs a transcript on an empty server and compares every reply.
pub(crate) fn check(steps: &[(&str, &str)]) {
    in_process::check_beside_redis(&crate::families(), steps);
}
