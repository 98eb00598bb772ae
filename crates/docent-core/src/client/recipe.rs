//! What recipes need from their client: their kind, the stages of a shutdown, their paths, tasks and waits.

use super::Client;
use crate::error::Error;
use crate::node::{NOT_OWN, NodePath, is_own_path};
use crate::operation::Idempotency;
use crate::session::link::transport::Transport;
use crate::telemetry::RecipeInstruments;
use std::fmt::{DebugStruct, Formatter};
use std::future::{Future, pending};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Description of a recipe for the core crate. Each recipe has one `static` of this type.
///
/// ```
/// use docent_core::recipe::{RecipeKind, Stage};
///
/// static RATE_LIMIT: RecipeKind = RecipeKind::new("rate_limit", "acquire").also(&["refill"]);
/// static IMPORT: RecipeKind = RecipeKind::new("import", "take").released_in(Stage::Deliveries);
/// ```
#[derive(Debug)]
pub struct RecipeKind {
    label: &'static str,
    pub(crate) acquire: &'static str,
    other_methods: &'static [&'static str],
    pub(crate) stage: Stage,
}

impl RecipeKind {
    /// Creates a recipe with the value `label` for the label `recipe` of its metrics, spans and log messages.
    /// Recipes with the same label share their metrics. `acquire` is the method that returns a guard; errors
    /// of a [`Line`](crate::recipe::Line) name it.
    ///
    /// A [shutdown](crate::Client::shutdown) releases the recipe's guards in [`Stage::Locks`].
    pub const fn new(label: &'static str, acquire: &'static str) -> Self {
        Self { label, acquire, other_methods: &[], stage: Stage::Locks }
    }

    /// Names the other methods that send requests. The metric `docent_retries_total` has a series for each
    /// method, which starts at zero with the recipe's first handle.
    #[must_use]
    pub const fn also(mut self, methods: &'static [&'static str]) -> Self {
        self.other_methods = methods;
        self
    }

    /// Releases the recipe's guards in this stage of a [shutdown](crate::Client::shutdown) instead.
    ///
    /// # Panics
    /// If `stage` is not one of [`Elections`](Stage::Elections), [`Deliveries`](Stage::Deliveries) and
    /// [`Locks`](Stage::Locks). In a `static` this is a compile error.
    #[must_use]
    pub const fn released_in(mut self, stage: Stage) -> Self {
        assert!(
            matches!(stage, Stage::Elections | Stage::Deliveries | Stage::Locks),
            "guards are released in one of the stages Elections, Deliveries and Locks"
        );
        self.stage = stage;
        self
    }

    /// Returns the value of the label `recipe`.
    pub const fn label(&self) -> &'static str {
        self.label
    }

    pub(crate) fn operations(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.acquire).chain(self.other_methods.iter().copied())
    }
}

/// A recipe as a client uses it: its kind, and the client's metrics for it.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) kind: &'static RecipeKind,
    pub(crate) metrics: Arc<RecipeInstruments>,
}

impl NodePath {
    /// Validates the path of a recipe of `client`, like [`new`](Self::new). Also refuses paths that are
    /// reserved at the servers, with the client's chroot and namespace: `/zookeeper` and folders named
    /// `_docent`.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, is the root or is reserved.
    pub fn of_recipe(
        client: &Client,
        operation: &'static str,
        path: impl Into<String>,
    ) -> Result<Self, Error> {
        let path = Self::new(operation, path)?;
        refuse_reserved(client, operation, &path)?;
        Ok(path)
    }
}

/// Refuses a path, which may be the prefix of a sequential node, if it is reserved.
pub(crate) fn refuse_reserved(client: &Client, operation: &'static str, path: &str) -> Result<(), Error> {
    let full = client.shared().namespace.join_sequential(path);
    match reserved(&full) {
        Some(rule) => Err(Error::invalid_input(operation, refusal(path, &full, rule))),
        None => Ok(()),
    }
}

/// Returns the rule that a recipe at the path `full` at the servers breaks, if it is reserved.
fn reserved(full: &str) -> Option<&'static str> {
    if full.split('/').nth(1) == Some("zookeeper") {
        return Some("must not be \"/zookeeper\" or below it: these nodes belong to the servers");
    }
    is_own_path(full).then_some(NOT_OWN)
}

fn refusal(path: &str, full: &str, rule: &str) -> String {
    match path == full {
        true => format!("path {path:?} {rule}"),
        false => format!("path {path:?}, which is {full:?} at the servers, {rule}"),
    }
}

/// Returns `path` as the servers know it, with chroot and namespace. Log messages name nodes in this way.
pub fn full_path(client: &Client, path: &str) -> String {
    client.shared().namespace.join(path)
}

/// Returns `error` with its path as the servers know it. Log messages contain errors in this way.
pub fn full_error(client: &Client, error: &Error) -> Error {
    client.shared().namespace.located(error)
}

/// Returns true for the id of the client's session or of an earlier one, as far as the last 64 are known.
pub fn is_own_session(client: &Client, session: i64) -> bool {
    client.session_id() == Some(session) || client.shared().witness_of(session).is_some()
}

/// Returns the transport by which `client` reaches its servers, which includes TLS if the client uses it.
pub fn transport(client: &Client) -> Arc<dyn Transport> {
    Arc::clone(&client.shared().ensemble.transport)
}

/// Spawns a task of a recipe that keeps something up to date, on the runtime of the client's own tasks. With
/// [`dedicated_thread`](crate::ClientBuilder::dedicated_thread) that is not the session's runtime. The task
/// calls user code through [`Hooks`](super::Hooks).
///
/// [`Client::close`] waits for the task, at most for the operation timeout. The task must end when the client
/// is closed, as streams and caches do. It should hold no [`Client`], which would keep the client open.
pub fn spawn(client: &Client, task: impl Future<Output = ()> + Send + 'static) {
    let shared = client.shared();
    shared.tasks.spawn_on(task, &shared.runtime);
}

/// Waits for `future`, at most for the operation timeout of `client`, so that waits for anything but servers
/// are limited, too.
///
/// # Errors
/// The error of `future`; `Timeout`, for `operation` on `path`.
///
/// # Cancel safety
/// As cancel safe as `future`, which is dropped when the time is up.
pub async fn in_time<T, E: From<Error>>(
    client: &Client,
    operation: &'static str,
    path: &str,
    future: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match tokio::time::timeout_at(client.deadline(), future).await {
        Ok(result) => result,
        Err(_) => Err(client.attempts(operation, path, Idempotency::Idempotent).timeout().into()),
    }
}

/// Begins the debug output of a recipe's handle: its path, and its client in one line, without any data.
pub fn debug_handle<'a, 'b>(
    f: &'a mut Formatter<'b>,
    name: &str,
    path: &str,
    client: &Client,
) -> DebugStruct<'a, 'b> {
    let mut printed = f.debug_struct(name);
    printed.field("path", &path).field("client", client);
    printed
}

/// Stage of a client's [shutdown](crate::Client::shutdown), in order. Once a stage is reached, nothing that
/// the stage ends can be acquired or registered any more. Deliveries cannot be taken from the first stage on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// No shutdown has begun.
    Open,
    /// Kept nodes announce that they are about to leave.
    Drain,
    /// Kept nodes that belong to their session are removed.
    Deregister,
    /// Candidates leave; leaders stop and resign.
    Elections,
    /// Items in work are finished or returned. Consumers take no more items since the shutdown began.
    Deliveries,
    /// Locks and permits are released.
    Locks,
    /// The session is closed.
    Close,
}

impl Stage {
    /// Stages in which guards are released, in order.
    pub(crate) const OF_GUARDS: [Self; 3] = [Self::Elections, Self::Deliveries, Self::Locks];
}

/// Progress of a client's shutdown: the stage it has reached, and the time by which it ends.
#[derive(Debug)]
pub(crate) struct Stages {
    stage: watch::Sender<Stage>,
    /// `None` while only the operation timeout limits the close.
    end: watch::Sender<Option<Instant>>,
}

impl Default for Stages {
    fn default() -> Self {
        Self { stage: watch::Sender::new(Stage::Open), end: watch::Sender::new(None) }
    }
}

impl Stages {
    pub(crate) fn has_begun(&self, stage: Stage) -> bool {
        *self.stage.borrow() >= stage
    }

    /// Returns a receiver of each stage that is reached.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Enters a stage, unless a later one was already reached.
    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.send_if_modified(|reached| {
            let is_later = stage > *reached;
            *reached = stage.max(*reached);
            is_later
        });
    }

    /// Ends the shutdown by `end` at the latest. Returns true for the first request.
    pub(crate) fn end_by(&self, end: Instant) -> bool {
        let mut is_first = false;
        self.end.send_modify(|until| {
            is_first = until.is_none();
            *until = Some(until.map_or(end, |until| until.min(end)));
        });
        is_first
    }

    /// Waits for `done`, at most for one of `parts` equal parts of the remaining time, or until the client is
    /// closed. Returns `None` if `done` did not complete in that time.
    pub(crate) async fn within_part<T>(
        &self,
        parts: u32,
        closing: &CancellationToken,
        done: impl Future<Output = T>,
    ) -> Option<T> {
        let mut elapsed = std::pin::pin!(self.part_elapsed(parts));
        tokio::select! {
            biased;
            done = done => Some(done),
            () = closing.cancelled() => None,
            () = &mut elapsed => None,
        }
    }

    /// Resolves when one of `parts` equal parts of the remaining time has passed; never if there is no limit.
    pub(crate) async fn part_elapsed(&self, parts: u32) {
        let (began, mut end) = (Instant::now(), self.end.subscribe());
        loop {
            let until = *end.borrow_and_update();
            let part = until.map(|until| until.saturating_duration_since(began) / parts);
            tokio::select! {
                () = pause(part.map(|part| began + part)) => return,
                // `self` owns the sender, so the channel is never closed here.
                _ = end.changed() => {}
            }
        }
    }
}

async fn pause(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => pending().await,
    }
}

/// Waits until the [shutdown](Client::shutdown) of `client` has reached `stage`, for recipes that then end
/// their work. A client that is closed without a shutdown never reaches a stage.
///
/// # Cancel safety
/// This function is cancel safe.
pub async fn stage_reached(client: &Client, stage: Stage) {
    let mut stages = client.shared().stages.subscribe();
    if stages.wait_for(|reached| *reached >= stage).await.is_err() {
        pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn recipes_have_no_reserved_paths_at_the_servers() {
        let plain = Client::builder("127.0.0.1:1").build().unwrap();
        let within = Client::builder("127.0.0.1:1/a/_docent").build().unwrap();
        let system = Client::builder("127.0.0.1:1/zookeeper").build().unwrap();
        let refused = |client, path| NodePath::of_recipe(client, "test", path).unwrap_err().to_string();
        let servers = "must not be \"/zookeeper\" or below it: these nodes belong to the servers";
        let own = "must not be a folder \"_docent\" or below one: these nodes belong to Docent's clients";
        for path in ["/zookeeper", "/zookeeper/x"] {
            assert_eq!(refused(&plain, path), format!("test: path {path:?} {servers}"));
        }
        for path in ["/_docent", "/_docent/x", "/a/_docent-1f/x"] {
            assert_eq!(refused(&plain, path), format!("test: path {path:?} {own}"));
        }
        let named = |full: &str| format!("test: path \"/x\", which is {full:?} at the servers,");
        assert_eq!(refused(&within, "/x"), format!("{} {own}", named("/a/_docent/x")));
        assert_eq!(refused(&system, "/x"), format!("{} {servers}", named("/zookeeper/x")));
        let shop = Client::builder("127.0.0.1:1/shop").build().unwrap();
        for path in ["/zookeeper", "/a/zookeeper", "/zookeepers", "/_docents"] {
            NodePath::of_recipe(&shop, "test", path).unwrap();
        }
    }
}
