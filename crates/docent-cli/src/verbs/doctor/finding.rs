use serde::Serialize;

/// Result of one check of `docent doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// Name of the check, such as `lease`.
    pub(super) check: &'static str,
    /// Server that the finding is about, as `host:port`. `None` for the ensemble and the client.
    pub(super) server: Option<String>,
    pub(super) level: Level,
    /// Facts, as a sentence.
    pub(super) text: String,
    /// Steps that fix the problem. `None` if nothing has to be done.
    pub(super) remedy: Option<String>,
    /// Kind of the failure, for the exit code.
    #[serde(skip)]
    pub(super) cause: Cause,
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    Warning,
    Failure,
}

/// Kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// A server cannot be used.
    Unreachable,
    /// The servers are usable, but a setting is wrong.
    Setting,
    /// Permission is missing.
    Permission,
    /// An argument breaks a rule.
    Usage,
}

impl Finding {
    pub(super) fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, server: None, level: Level::Ok, text: text.into(), remedy: None, cause: Cause::Setting }
    }

    pub(super) fn warning(check: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { level: Level::Warning, remedy: Some(remedy.into()), ..Self::ok(check, text) }
    }

    pub(super) fn failure(
        check: &'static str,
        cause: Cause,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { level: Level::Failure, cause, ..Self::warning(check, text, remedy) }
    }

    pub(super) fn is_failure(&self) -> bool {
        self.level == Level::Failure
    }

    /// Returns the same finding, about `server`.
    pub(super) fn at(self, server: &str) -> Self {
        Self { server: Some(server.to_owned()), ..self }
    }
}
