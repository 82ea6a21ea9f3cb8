//! Transcripts against these families, in-process.

use kiln_testkit::in_process;
pub(crate) use kiln_testkit::in_process::TestServer;

/// A server with one worker and one client.
pub(crate) fn server() -> TestServer {
    TestServer::new(&crate::families())
}

/// Runs a transcript on an empty server and compares every reply.
pub(crate) fn check(steps: &[(&str, &str)]) {
    in_process::check(&crate::families(), steps);
}
