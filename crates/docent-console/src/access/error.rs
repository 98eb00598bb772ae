use std::io;
use std::path::PathBuf;

/// Why a token, or users and passwords, cannot be used. Texts name the file and the rule, never a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The file cannot be read.
    #[error("cannot read {path:?}: {error}")]
    Read {
        /// Path as given.
        path: PathBuf,
        /// Reason.
        error: io::Error,
    },
    /// Users other than the owner of the file have permissions on it.
    #[error("{path:?} has mode {mode:04o}: only its owner may read it; run `chmod 600 {path:?}`")]
    Mode {
        /// Path as given.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
    /// A token, user or password breaks a rule.
    #[error("{place} {rule}")]
    Rule {
        /// What breaks the rule, such as `the token in "/etc/docent/token"`.
        place: String,
        /// The rule.
        rule: &'static str,
    },
}
