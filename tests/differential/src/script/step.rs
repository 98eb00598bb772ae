use super::Operation;
use anyhow::{Context, Result, bail, ensure};
use std::fmt;

/// Action of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Sends a request with these fields, as text.
    Request(&'static Operation, Vec<String>),
    /// Sends a request with any number and this body.
    Raw(i32, Vec<u8>),
    /// Closes the link of the session.
    Drop,
    /// Opens a new link for the session, with a timeout in milliseconds.
    Attach(i32),
    /// Lets the session expire.
    Expire,
    /// Waits until the servers have deleted a node, for at most two seconds.
    AwaitDeleted(String),
}

/// A step of a script: an action of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Number of the session, which is opened by its first step.
    pub session: usize,
    /// Whether the next step does not wait for the end of this step.
    pub at_once: bool,
    /// The action of the session.
    pub action: Action,
}

impl Step {
    /// Creates a step that the next step waits for.
    pub fn new(session: usize, action: Action) -> Self {
        Self { session, at_once: false, action }
    }

    /// Parses a line of a script.
    ///
    /// # Errors
    /// Returns an error if the line is not a valid step.
    pub fn parse(line: &str) -> Result<Self> {
        let mut words = line.split_whitespace();
        let session_word = words.next().context("a step must begin with the number of its session")?;
        let (session, at_once) = match session_word.strip_suffix('+') {
            Some(session) => (session, true),
            None => (session_word, false),
        };
        let session = session.parse().with_context(|| format!("{session:?} is not a session"))?;
        let name = words.next().context("a step must have an action")?;
        let rest: Vec<String> = words.map(str::to_owned).collect();
        Ok(Self { session, at_once, action: Action::parse(name, rest)? })
    }
}

impl Action {
    fn parse(name: &str, rest: Vec<String>) -> Result<Self> {
        let first = rest.first().map_or("", String::as_str);
        Ok(match name {
            "drop" => Self::Drop,
            "attach" => Self::Attach(first.parse().context("attach needs a timeout")?),
            "expire" => Self::Expire,
            "gone" => Self::AwaitDeleted(first.to_owned()),
            "raw" => {
                let body = rest.get(1).map_or("", String::as_str);
                Self::Raw(first.parse().context("raw needs a number")?, from_hex(body)?)
            }
            _ => match Operation::find(name) {
                Some(operation) => Self::Request(operation, rest),
                None => bail!("{name:?} is not an action"),
            },
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} ", self.session, if self.at_once { "+" } else { "" })?;
        match &self.action {
            Action::Request(operation, fields) => {
                write!(f, "{}", operation.name)?;
                fields.iter().try_for_each(|field| write!(f, " {field}"))
            }
            Action::Raw(code, body) => {
                write!(f, "raw {code} ")?;
                body.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Action::Drop => f.write_str("drop"),
            Action::Attach(timeout) => write!(f, "attach {timeout}"),
            Action::Expire => f.write_str("expire"),
            Action::AwaitDeleted(path) => write!(f, "gone {path}"),
        }
    }
}

fn from_hex(text: &str) -> Result<Vec<u8>> {
    ensure!(text.is_ascii() && text.len().is_multiple_of(2), "invalid body {text:?}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).with_context(|| format!("invalid body {text:?}")))
        .collect()
}

/// Parses a script: one step per line, and comment lines that begin with `#`.
///
/// # Errors
/// Returns an error if a line is not a valid step.
pub fn parse(text: &str) -> Result<Vec<Step>> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| Step::parse(line).with_context(|| format!("line {line:?}")))
        .collect()
}

/// The text of a script, in the form that [`parse`] reads.
pub fn print(script: &[Step]) -> String {
    script.iter().map(|step| format!("{step}\n")).collect()
}
