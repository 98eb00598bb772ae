//! The log of a scenario, as readable text that is stored in a file and compared on each run.

use std::fmt::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::subscriber::NoSubscriber;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Environment variable with which the snapshots are overwritten instead of compared.
const UPDATE: &str = "DOCENT_UPDATE_SNAPSHOTS";

/// All events of this thread at level INFO and above: the client's label, and the line without times, ids and
/// ports.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(String, String)>>>);

impl Log {
    /// Starts to collect events, until the second returned value is dropped.
    pub(crate) fn from_here_on() -> (Self, impl Sized) {
        let log = Self::default();
        // With a single subscriber in the process, tracing would cache a call site as disabled if a thread of
        // another test reached it first.
        let _ = tracing::subscriber::set_global_default(NoSubscriber::default());
        let subscriber = tracing_subscriber::registry().with(log.clone());
        let another = tracing::Dispatch::new(tracing_subscriber::registry());
        (log, (tracing::subscriber::set_default(subscriber), another))
    }

    /// Returns the lines of these clients, each under its label.
    pub(crate) fn text(&self, clients: &[&str]) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for client in clients {
            writeln!(text, "# {client}").unwrap();
            for (_, line) in lines.iter().filter(|(label, _)| label == client) {
                writeln!(text, "{line}").unwrap();
            }
        }
        text
    }

    /// Returns true if a line of this client contains `text`.
    pub(crate) fn has(&self, client: &str, text: &str) -> bool {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().any(|(label, line)| label == client && line.contains(text))
    }
}

/// Compares `text` with the snapshot of this name.
pub(crate) fn assert_snapshot(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("observability/snapshots/{name}.txt"));
    if std::env::var_os(UPDATE).is_some() {
        return std::fs::write(path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{}: set {UPDATE}=1 to overwrite the snapshot", path.display());
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let is_docent = metadata.target().starts_with("docent::") && metadata.target() != "docent::server";
        if *metadata.level() > Level::INFO || !is_docent {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        let Line { client, message, fields } = line;
        let text = format!("{:5} {message}{fields}", metadata.level().as_str());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((client, text));
    }
}

/// One event while its fields are collected.
#[derive(Default)]
struct Line {
    client: String,
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field.name(), &format!("{value:?}"));
    }
}

impl Line {
    fn add(&mut self, name: &str, value: &str) {
        let value = match name {
            "client" => return value.clone_into(&mut self.client),
            "message" => return value.clone_into(&mut self.message),
            "session_id" => "<session>".to_owned(),
            "fence" | "term" => "<fence>".to_owned(),
            "stood_still_seconds" | "late_seconds" if is_long(value) => {
                "<32 s, less a heartbeat's pause>".to_owned()
            }
            name if name.ends_with("_seconds") => "<time>".to_owned(),
            _ => plain(value),
        };
        let quote = if value.contains(' ') { "\"" } else { "" };
        write!(self.fields, " {name}={quote}{value}{quote}").unwrap();
    }
}

/// Returns true for a delay of a process that was stopped for 32 s. The delay counts from the first event
/// that was due meanwhile. With a session timeout of 20 s that is a heartbeat, which follows the previous one
/// after at most 3.4 s.
fn is_long(time: &str) -> bool {
    time.parse::<f64>().is_ok_and(|time| time >= 28.5)
}

/// Returns the text without ports, the test's own path, and ids in names.
fn plain(text: &str) -> String {
    // A stopped server may close a connection in either way.
    let text = &text.replace(
        "the connection failed: Connection reset by peer (os error 104)",
        "the server closed the connection",
    );
    let text = replaced(text, "127.0.0.1:", |c| c.is_ascii_digit(), "<server>");
    let text = replaced(&text, "/test-", |c| c.is_ascii_digit(), "");
    let text = replaced(&text, "_c_", |c| c.is_ascii_hexdigit() || c == '-', "<id>-");
    replaced(&text, "(os error ", |c| c.is_ascii_digit(), "(os error <n>")
}

/// Returns `text` with `by` in place of each `start` and the following characters for which `rest` holds.
fn replaced(text: &str, start: &str, rest: impl Fn(char) -> bool, by: &str) -> String {
    let mut parts = text.split(start);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all.push_str(by);
        all.push_str(part.trim_start_matches(&rest));
    }
    all
}
