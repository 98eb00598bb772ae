//! Commands of chromedriver beyond the standard.

use fantoccini::wd::WebDriverCompatibleCommand;
use http::Method;
use serde_json::{Value, json};
use url::{ParseError, Url};

/// A command that is posted to a path below the session.
#[derive(Debug)]
pub(crate) struct Command {
    path: &'static str,
    body: Value,
}

impl Command {
    /// A command of the protocol that Chromium's developer tools use.
    pub(crate) fn devtools(name: &str, parameters: &Value) -> Self {
        Self { path: "goog/cdp/execute", body: json!({ "cmd": name, "params": parameters }) }
    }

    /// Takes the entries of a log since the last time.
    pub(crate) fn log(kind: &str) -> Self {
        Self { path: "se/log", body: json!({ "type": kind }) }
    }
}

impl WebDriverCompatibleCommand for Command {
    fn endpoint(&self, base_url: &Url, session_id: Option<&str>) -> Result<Url, ParseError> {
        base_url.join(&format!("session/{}/{}", session_id.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _url: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}
