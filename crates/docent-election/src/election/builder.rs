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

/// Bytes of a create request besides the candidate's data and path.
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

/// Minimum time between the starts of two terms if no other interval is set.
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

    /// Sets the id of the candidate, which is stored in the candidate's node and returned by
    /// [`Election::leader`] and [`Election::candidates`]. The default depends on the
    /// [`layout`](Self::layout). The id must not be empty, because Curator writes an empty id for a candidate
    /// without one.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the data of the candidate's node, which replaces the id: for example an address at which the
    /// leader can be reached. Curator reads this data as the id. An election that is built with data never
    /// prints the data of any candidate.
    pub fn data(mut self, data: impl Into<Bytes>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Sets which of Curator's layouts the candidates use. Default [`ElectionLayout::LeaderLatch`].
    pub fn layout(mut self, layout: ElectionLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Also waits for candidates of another kind: nodes whose names end with `marker` and ten digits, such as
    /// `__lock__` for kazoo's `Election`. May be called for several kinds. By default the election waits only
    /// for its own candidates and those of the Curator recipe of its [layout](Self::layout).
    ///
    /// The other candidates have to wait for Docent's candidates as well; otherwise both lead. All candidates
    /// need the same settings.
    pub fn neighbours(mut self, marker: impl Into<String>) -> Self {
        self.neighbours.push(marker.into());
        self
    }

    /// Sets how long a new leader waits before its term begins if its predecessor did not
    /// [resign](crate::Leadership::resign). Such a predecessor was lost or killed, its work panicked, or its
    /// `Leadership` or run was dropped. Requests that it sent to other systems may still arrive. Default
    /// zero. A delay of at least the session timeout is recommended.
    ///
    /// A leader with this setting writes its term into the election's own node and removes the term when it
    /// resigns. All candidates should therefore have the same setting: a leader without the setting, such as
    /// one of Curator's, records no term, so its successor does not wait. The node is created as a persistent
    /// node, so that the term survives while there is no candidate. A node that was created before the
    /// setting was used may be a container. A persistent child `docent-keeper` keeps such a container alive
    /// until a [`reset`](Election::reset).
    ///
    /// While a leader waits, it is already first in line, and [`Election::leader`] and [`Election::observe`]
    /// return it.
    pub fn takeover_delay(mut self, delay: Duration) -> Self {
        self.takeover_delay = delay;
        self
    }

    /// Sets how long work under [`Election::run`] may continue after
    /// [`Leadership::token`](crate::Leadership::token) is cancelled, so that the work can stop in its own
    /// way. Default zero: the work is dropped immediately. The maximum is the margin of the lease: a third of
    /// the session timeout, or a sixth of it plus one tick plus 100 ms if that is more.
    ///
    /// If the lease ran out, the grace is counted from the end of the lease. The leadership is then lost:
    /// `is_held` returns false and transactions fail. Because the servers keep the session for about the
    /// margin longer, usually no other candidate leads during the grace; only the fence protects with
    /// certainty. If the leadership was lost in another way, another candidate may already lead, so there is
    /// no grace.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the minimum time between the starts of two terms of this candidate under [`Election::run`].
    /// Default one second; `Duration::ZERO` disables the interval. If the work returns before the interval
    /// has passed, the candidate waits for the rest plus a random extra of up to a quarter of the interval.
    /// It does not campaign meanwhile, so that other candidates can lead. After a lost leadership the
    /// candidate campaigns again immediately.
    pub fn term_interval(mut self, interval: Duration) -> Self {
        self.term_interval = interval;
        self
    }

    /// Sets the name of the election in metrics. With the feature `metrics`, the gauge `docent_leader` with
    /// the label `election` is 1 while this candidate leads, and 0 otherwise. By default there is no such
    /// gauge.
    pub fn metrics_name(mut self, name: impl Into<String>) -> Self {
        self.metrics_name = Some(name.into());
        self
    }

    /// Builds the election.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, if the id is empty, if both an id and data are given, if a
    /// marker of neighbours is empty, contains '/', ends with a digit or is already used, or if the grace
    /// exceeds the margin of the lease. The margin is known only once the client has connected; until then,
    /// campaigning reports this error. `TooLarge` if the id or data exceed the servers' request limit.
    pub fn build(self) -> Result<Election, Error> {
        let invalid = |detail: String| Err(Error::invalid_input("election", detail));
        // A container would be deleted, with the term of a lost leader, as soon as there is no candidate.
        let line = if self.takeover_delay.is_zero() { Line::new } else { Line::lasting };
        let line = line(&self.client, &self.path, &KIND, self.layout.marker())?;
        let line = line.with_own_child(takeover::KEEPER);
        let with = |line: Line, marker| line.with_neighbours(marker, Role::Exclusive);
        let line = self.neighbours.iter().cloned().try_fold(line, with)?;
        if self.id.as_deref() == Some("") {
            return invalid("id \"\" must not be empty".to_owned());
        }
        if let (Some(id), Some(_)) = (&self.id, &self.data) {
            return invalid(format!(
                "id {id:?} and data must not both be given: the candidate's node holds only one of them"
            ));
        }
        let line = if self.data.is_some() { line.with_payload() } else { line };
        let data = self.data.or(self.id.map(Bytes::from));
        let (length, most) = (data.as_ref().map_or(0, Bytes::len), self.client.max_request());
        let size = length + self.path.len() + FIELDS;
        if size > most {
            return Err(Error::too_large("election", size, most).at(&self.path));
        }
        // Curator's recipes write empty data for a candidate without an id.
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

// Does not print the data, which may be confidential.
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
