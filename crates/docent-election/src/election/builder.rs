use super::election::Inner;
use super::{Election, ElectionLayout};
use crate::{takeover, telemetry};
use bytes::Bytes;
use docent_core::recipe::{Line, RecipeKind, Stage};
use docent_core::{Client, Error, Role};
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

static KIND: RecipeKind = RecipeKind::new("election", "campaign").released_in(Stage::Elections);

/// Bytes of a request besides a candidate's data and path.
const FIELDS: usize = 1024;

/// Settings of an [`Election`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ElectionBuilder {
    client: Client,
    path: String,
    id: Option<String>,
    data: Option<Bytes>,
    layout: ElectionLayout,
    neighbours: Vec<String>,
    takeover_delay: Duration,
    grace: Duration,
    term_interval: Duration,
    metrics_name: Option<String>,
}

/// Least time between the starts of two terms, where no other was set.
const TERM_INTERVAL: Duration = Duration::from_secs(1);

impl ElectionBuilder {
    pub(crate) fn new(client: &Client, path: &str) -> Self {
        Self {
            client: client.clone(),
            path: path.to_owned(),
            id: None,
            data: None,
            layout: ElectionLayout::default(),
            neighbours: Vec::new(),
            takeover_delay: Duration::ZERO,
            grace: Duration::ZERO,
            term_interval: TERM_INTERVAL,
            metrics_name: None,
        }
    }

    /// Id of the candidate: written into its node, for [`Election::leader`] and [`Election::candidates`].
    /// Default: as [`layout`](Self::layout) says. It must not be empty: that is how Curator writes that there
    /// is none.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Data of the candidate's node in place of an id, such as an address at which the leader can be reached.
    /// Curator takes it for the id. An election that is built with data prints nobody's.
    pub fn data(mut self, data: impl Into<Bytes>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Curator's layout to use. Default [`ElectionLayout::LeaderLatch`].
    pub fn layout(mut self, layout: ElectionLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Waits for candidates of another kind, too: nodes whose names end with `marker` and ten digits, as
    /// `__lock__` for kazoo's `Election`. May be called for several kinds. Default none, but those of
    /// Curator's recipe of the [layout](Self::layout).
    ///
    /// They have to wait for ours as well, or both lead. All candidates need the same settings.
    pub fn neighbours(mut self, marker: impl Into<String>) -> Self {
        self.neighbours.push(marker.into());
        self
    }

    /// How long a new leader waits before it begins when its predecessor did not
    /// [resign](crate::Leadership::resign): that one was lost, killed or dropped, and what it had under way
    /// may still arrive somewhere. Default none. At least the session timeout is advised.
    ///
    /// Leaders with this setting write their term into the election's own node and take it out when they
    /// resign, so that all candidates should have it. It cannot tell what became of a leader without it, as
    /// one of Curator's. The node is created as a persistent one, so that the term is kept also while nobody
    /// stands. A node that is there before the setting may be a container; a persistent child
    /// `docent-keeper` keeps it, until a [`reset`](Election::reset).
    ///
    /// A leader that waits is the first in the line, and [`Election::leader`] and [`Election::observe`] show
    /// it.
    pub fn takeover_delay(mut self, delay: Duration) -> Self {
        self.takeover_delay = delay;
        self
    }

    /// How long work under [`Election::run`] may go on after [`Leadership::token`](crate::Leadership::token)
    /// was cancelled, to stop in its own way. Default none: it is dropped at once. At most the margin of the
    /// lease, which is a third of the session timeout, or a sixth of it and a tick and 100 ms if that is
    /// more.
    ///
    /// When the lease ran out the time runs from its end. The leadership is lost then: `is_held` is false and
    /// transactions fail. The servers keep the session for about the margin longer, so that nobody else leads
    /// in most cases; only the fence is sure. When it was lost in another way, somebody else may lead
    /// already, and there is no grace.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Least time between the starts of two terms of this candidate under [`Election::run`], where the
    /// work of the first one returned before that. Default one second; `Duration::ZERO` for none. Up to a
    /// quarter of it comes on top, at random. Until then the candidate does not stand, so that others
    /// lead. After a leadership that was lost it stands again at once.
    pub fn term_interval(mut self, interval: Duration) -> Self {
        self.term_interval = interval;
        self
    }

    /// Name of the election in metrics: with the feature `metrics` the gauge `docent_leader` with the label
    /// `election` is 1 while this candidate leads, and 0 else. Default none, and then there is no such gauge.
    pub fn metrics_name(mut self, name: impl Into<String>) -> Self {
        self.metrics_name = Some(name.into());
        self
    }

    /// The election.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, when the id is empty, when both an id and data are given,
    /// when a marker of neighbours is empty, contains '/', ends with a digit or counts already, and when the
    /// grace does not fit into the margin of the lease. The last is known once the client has connected;
    /// until then campaigning fails with it. `TooLarge` when id or data are larger than the servers take.
    pub fn build(self) -> Result<Election, Error> {
        let invalid = |detail: String| Err(Error::invalid_input("election", detail));
        // A container would go with the term of a leader that was lost, once nobody stands.
        let line = if self.takeover_delay.is_zero() { Line::new } else { Line::lasting };
        let line = line(&self.client, &self.path, &KIND, self.layout.marker())?;
        let line = line.with_own_child(takeover::KEEPER);
        let with = |line: Line, marker| line.with_neighbours(marker, Role::Exclusive);
        let line = self.neighbours.iter().cloned().try_fold(line, with)?;
        if self.id.as_deref() == Some("") {
            return invalid("id \"\" must not be empty".to_owned());
        }
        if let (Some(id), Some(_)) = (&self.id, &self.data) {
            return invalid(format!("id {id:?} and data must not both be given: one node holds one of them"));
        }
        let line = if self.data.is_some() { line.with_payload() } else { line };
        let data = self.data.or(self.id.map(Bytes::from));
        let (length, most) = (data.as_ref().map_or(0, Bytes::len), self.client.max_request());
        let size = length + self.path.len() + FIELDS;
        if size > most {
            return Err(Error::too_large("election", size, most).at(&self.path));
        }
        // Curator's recipes write this for a candidate without an id.
        let data = match self.layout {
            ElectionLayout::LeaderLatch => Some(data.unwrap_or_default()),
            ElectionLayout::LeaderSelector => data,
        };
        let gauge = self.metrics_name.as_deref().map(|name| telemetry::leader(&self.client, name));
        let Self { takeover_delay, grace, term_interval, .. } = self;
        let leading = Mutex::default();
        Election::checked(Inner { line, data, takeover_delay, grace, term_interval, gauge, leading })
    }
}

// The data of nodes is not printed.
impl fmt::Debug for ElectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionBuilder")
            .field("path", &self.path)
            .field("layout", &self.layout)
            .field("takeover_delay", &self.takeover_delay)
            .field("grace", &self.grace)
            .field("term_interval", &self.term_interval)
            .finish_non_exhaustive()
    }
}
