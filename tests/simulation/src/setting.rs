use crate::options::Options;
use docent_checker::Tolerances;
use fastrand::Rng;
use std::time::Duration;

/// Settings that do not change during a run. They are drawn from the seed, unless they were chosen.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) seed: u64,
    /// Number of clients.
    pub(crate) clients: usize,
    /// The servers' tick.
    pub(crate) tick: Duration,
    /// The session timeout that clients request.
    pub(crate) timeout: Duration,
    /// In worlds with a follower, how often the follower reports to its leader which clients it has heard
    /// from.
    pub(crate) relay: Option<Duration>,
    /// In some of these worlds, how far the follower lags behind its leader.
    pub(crate) lag: Option<Duration>,
    /// Whether the header of an event contains the event's transaction, as in ZooKeeper from 3.9 on.
    pub(crate) zxid_in_events: bool,
    /// Whether caches use persistent watches.
    pub(crate) persistent_watches: bool,
    /// Whether a follower only has the operations of ZooKeeper 3.5, as in an ensemble that is being upgraded.
    pub(crate) old_follower: bool,
    /// Whether each client has separate credentials, in a tree whose root is closed: all clients may read it,
    /// but create nodes only below the folders of the workload.
    pub(crate) tenants: bool,
    /// How long a follower that lost its leader continues to serve.
    pub(crate) sync_limit: Duration,
    /// Timeout of a client's operations.
    pub(crate) operation_timeout: Duration,
    /// Longest time that a message takes in a healthy network.
    pub(crate) latency: Duration,
    /// How long faults happen.
    pub(crate) turbulence: Duration,
    /// Time between faults at one client, in session timeouts.
    pub(crate) pace: f64,
}

/// A random source for draws of one kind, which leaves all other draws unchanged.
pub(crate) fn apart(seed: u64, kind: [u8; 8]) -> Rng {
    Rng::with_seed(seed ^ u64::from_be_bytes(kind))
}

impl Setting {
    pub(crate) fn draw(options: &Options, rng: &mut Rng) -> Self {
        let millis =
            |choices: &[u64], rng: &mut Rng| Duration::from_millis(choices[rng.usize(..choices.len())]);
        let tick = millis(&[100, 200, 250, 500], rng);
        let ticks = [4, 6, 8, 10, 12, 20][rng.usize(..6)];
        let timeout = (tick * ticks).max(Duration::from_millis(600));
        // Few clients are more likely than many.
        let clients = 2 + rng.usize(..11).min(rng.usize(..11));
        let drawn = Self {
            seed: options.seed,
            clients,
            tick,
            timeout,
            lag: None,
            zxid_in_events: apart(options.seed, *b"\0event\0\0").bool(),
            persistent_watches: apart(options.seed, *b"\0persist").bool(),
            old_follower: apart(options.seed, *b"\0old-one").bool(),
            tenants: apart(options.seed, *b"\0tenants").u8(..3) == 0,
            relay: rng.bool().then(|| if rng.bool() { tick } else { tick / 2 }),
            sync_limit: tick * [5, 10, 30][rng.usize(..3)],
            operation_timeout: timeout.mul_f64(1.0 + 4.0 * rng.f64()),
            latency: millis(&[2, 5, 10, 20], rng),
            turbulence: Duration::from_secs(rng.u64(60..=120)),
            pace: [1.5, 3.0, 6.0, 12.0][rng.usize(..4)],
        };
        // ZooKeeper disconnects a follower that lags by more than five ticks.
        let lag = tick * [0, 1, 2, 4][rng.usize(..4)];
        Self {
            lag: drawn.relay.and((!lag.is_zero()).then_some(lag)),
            clients: options.clients.unwrap_or(drawn.clients),
            turbulence: options.turbulence.unwrap_or(drawn.turbulence),
            ..drawn
        }
    }

    /// The part of the timeout that a lease leaves unused, as documented.
    fn margin(&self) -> Duration {
        (self.timeout / 3).max(self.timeout / 6 + self.tick + Duration::from_millis(100))
    }

    /// Duration of a lease.
    pub(crate) fn lease(&self) -> Duration {
        self.timeout.saturating_sub(self.margin())
    }

    /// Precision of the record, and the permitted delays in a healthy world.
    pub(crate) fn tolerances(&self, freezes: bool) -> Tolerances {
        /// How often a client checks its clock, because its timers may stop while its clock runs on.
        const LOOK: Duration = Duration::from_secs(1);
        let mut tolerances = Tolerances::default();
        if freezes {
            tolerances.scheduling += LOOK;
        }
        let steps = Duration::from_millis(5);
        tolerances.round_trip = self.latency * 2 + steps;
        // A silent link is given up after a third of the timeout, and so is a connection attempt. Pauses
        // between attempts are below a second.
        tolerances.reconnect = self.timeout * 2 / 3 + Duration::from_secs(2);
        tolerances.lag = self.lag.unwrap_or_default() + self.relay.unwrap_or_default();
        tolerances.operation = self.operation_timeout;
        tolerances
    }

    /// A duration close to one of those at which the behaviour changes.
    pub(crate) fn span(&self, rng: &mut Rng) -> Duration {
        let thresholds = [
            self.tick,
            self.timeout / 6,
            self.timeout / 3,
            self.lease(),
            self.timeout,
            self.timeout + self.tick,
            self.timeout * 2,
        ];
        let threshold = thresholds[rng.usize(..thresholds.len())];
        match rng.u8(..4) {
            0 => threshold.mul_f64(0.2 + 0.6 * rng.f64()),
            1 => threshold.mul_f64(1.0 + 0.5 * rng.f64()),
            _ => threshold.mul_f64(0.9 + 0.2 * rng.f64()),
        }
    }

    /// A pause between two faults of one kind at one client.
    pub(crate) fn pause(&self, rng: &mut Rng) -> Duration {
        self.timeout.mul_f64(self.pace * (0.2 + 1.6 * rng.f64()))
    }
}
