//! How bad input is refused.

use docent::{Error, ErrorKind};
use docent_battery::TestServer;
use docent_proto::OpCode;

/// Paths of no recipe, each with the rule it breaks.
const BAD_PATHS: [(&str, &str); 7] = [
    ("", "must not be empty"),
    ("a", "must start with '/'"),
    ("/a/", "must not end with '/'"),
    ("/a//b", "must not have an empty segment"),
    ("/a/../b", "must not have a segment"),
    ("/a\u{0}", "must not contain a character"),
    ("/", "must not be the root"),
];

/// Checks that `make` refuses bad paths with errors that name path and rule.
///
/// # Panics
/// When it takes one, or says something else.
pub fn refuses_bad_paths<T>(make: impl Fn(&str) -> Result<T, Error>) {
    for (path, rule) in BAD_PATHS {
        let Err(error) = make(path) else { panic!("{path:?} was taken") };
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains(rule) && text.contains(&format!("{path:?}")), "{text}");
    }
}

/// How many frames went through the front of `server` after the first `before`, not counting pings.
pub fn frames_since(server: &TestServer, before: usize) -> usize {
    server.front().trace()[before..].iter().filter(|frame| frame.op != Some(OpCode::Ping)).count()
}
