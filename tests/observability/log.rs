//! The log of a scenario, as text that a reader can follow: kept in a file, and compared on each run.

use std::fmt::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::subscriber::NoSubscriber;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Set, the snapshots are written anew instead of compared.
const UPDATE: &str = "DOCENT_UPDATE_SNAPSHOTS";

/// All that this thread logs from INFO on: the label of the client, and the line without times, ids and
/// ports.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(String, String)>>>);

impl Log {
    /// Begins to listen, for as long as what comes with it is kept.
    pub(crate) fn from_here_on() -> (Self, impl Sized) {
        let log = Self::default();
        // As in the suite `core`: with a single subscriber in the process, a line of code that another test's
        // thread reaches first is taken to interest nobody.
        let _ = tracing::subscriber::set_global_default(NoSubscriber::default());
        let subscriber = tracing_subscriber::registry().with(log.clone());
        let another = tracing::Dispatch::new(tracing_subscriber::registry());
        (log, (tracing::subscriber::set_default(subscriber), another))
    }

    /// The lines of these clients, each under its label.
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

    /// True when a line of this client contains `text`.
    pub(crate) fn has(&self, client: &str, text: &str) -> bool {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().any(|(label, line)| label == client && line.contains(text))
    }
}

/// Compares `text` with the snapshot of that name.
pub(crate) fn assert_snapshot(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("observability/snapshots/{name}.txt"));
    if std::env::var_os(UPDATE).is_some() {
        return std::fs::write(path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{}: set {UPDATE}=1 to write it anew", path.display());
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let is_ours =
            metadata.target().starts_with("docent") && !metadata.target().starts_with("docent_server");
        if *metadata.level() > Level::INFO || !is_ours {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        let Line { client, message, fields } = line;
        let text = format!("{:5} {message}{fields}", metadata.level().as_str());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((client, text));
    }
}

/// One event, as it is collected.
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
            "stood_still" | "late" if is_long(value) => "<32 s, less a heartbeat's pause>".to_owned(),
            "timeout" | "down_for" | "certain_for" | "held_for" | "stood_still" | "late"
            | "noticed_late_by" => "<time>".to_owned(),
            _ => plain(value),
        };
        let quote = if value.contains(' ') { "\"" } else { "" };
        write!(self.fields, " {name}={quote}{value}{quote}").unwrap();
    }
}

/// True for a time of 32 s, from the first moment on at which something was due while the process was
/// stopped: with a session timeout of 20 s that is a heartbeat, 3.4 s after another at most.
fn is_long(time: &str) -> bool {
    time.strip_suffix(" s").and_then(|time| time.parse::<f64>().ok()).is_some_and(|time| time >= 28.5)
}

/// The text without ports, the test's own path, and ids in names.
fn plain(text: &str) -> String {
    // A stopped server may end a connection in either way.
    let text = &text.replace(
        "the connection failed: Connection reset by peer (os error 104)",
        "the server closed the connection",
    );
    let text = replaced(text, "127.0.0.1:", |c| c.is_ascii_digit(), "<server>");
    let text = replaced(&text, "/test-", |c| c.is_ascii_digit(), "");
    let text = replaced(&text, "_c_", |c| c.is_ascii_hexdigit() || c == '-', "<id>-");
    replaced(&text, "(os error ", |c| c.is_ascii_digit(), "(os error <n>")
}

/// `text` with `by` in place of each `start` and the characters behind it for which `rest` holds.
fn replaced(text: &str, start: &str, rest: impl Fn(char) -> bool, by: &str) -> String {
    let mut parts = text.split(start);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all.push_str(by);
        all.push_str(part.trim_start_matches(&rest));
    }
    all
}
