//! Rejection of invalid paths.

use docent::{Error, ErrorKind};
use docent_battery::TestServer;
use docent_proto::OpCode;

/// Invalid paths of recipes, each with the rule that it breaks.
const BAD_PATHS: [(&str, &str); 7] = [
    ("", "must not be empty"),
    ("a", "must start with '/'"),
    ("/a/", "must not end with '/'"),
    ("/a//b", "must not have an empty segment"),
    ("/a/../b", "must not have a segment"),
    ("/a\u{0}", "must not contain a character"),
    ("/", "must not be the root"),
];

/// Checks that `make` rejects invalid paths with errors that name the path and the rule.
///
/// # Panics
///
/// Panics if `make` accepts a path, or if an error has another text.
pub fn refuses_bad_paths<T>(make: impl Fn(&str) -> Result<T, Error>) {
    for (path, rule) in BAD_PATHS {
        let Err(error) = make(path) else { panic!("{path:?} was accepted") };
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains(rule) && text.contains(&format!("{path:?}")), "{text}");
    }
}

/// Returns the number of frames through the front proxy of `server` after the first `before` frames, without
/// pings.
pub fn frames_since(server: &TestServer, before: usize) -> usize {
    server.front().trace()[before..].iter().filter(|frame| frame.op != Some(OpCode::Ping)).count()
}
