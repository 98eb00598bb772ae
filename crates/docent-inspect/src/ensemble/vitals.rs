use super::answer::{Answer, Description, READ_ONLY, value};
use super::words::{exchange, exchange_any, talks_tls};
use docent_core::{ServerAddress, Transport};
use serde::Serialize;
use std::time::Duration;
use tokio::time::timeout;

/// Vital figures of one server, as it reports them. Figures that it does not report are `None`.
///
/// Serialized as an object with the fields below. Texts come from the server: print them with
/// [`printable`](crate::printable).
///
/// ```no_run
/// use docent_core::{ServerAddress, TcpTransport};
/// use docent_inspect::Vitals;
/// use std::time::Duration;
///
/// # async fn run() -> Result<(), docent_core::Error> {
/// for server in ServerAddress::all_of("zk1:2181,zk2:2181,zk3:2181")? {
///     let vitals = Vitals::query(&TcpTransport, &server, Duration::from_secs(2)).await;
///     println!("{server}: {} {:?}", vitals.state.name(), vitals.mode);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Vitals {
    /// Server, as in the connect string.
    pub server: String,
    /// Address that was queried.
    pub address: Option<String>,
    /// Whether and how the server answered.
    pub state: ServerState,
    /// `ZooKeeper` or `ClickHouse Keeper`.
    pub software: Option<&'static str>,
    /// Version without revision and date, such as `3.8.4`.
    pub version: Option<String>,
    /// `leader`, `follower`, `observer`, `standalone` or `read-only`.
    pub mode: Option<String>,
    /// Last transaction, such as `0x100000002`.
    pub zxid: Option<String>,
    /// Minimum latency of requests since the start of the server, in milliseconds.
    pub latency_min_ms: Option<f64>,
    /// Mean latency of requests since the start of the server, in milliseconds.
    pub latency_avg_ms: Option<f64>,
    /// Maximum latency of requests since the start of the server, in milliseconds.
    pub latency_max_ms: Option<f64>,
    /// Number of open connections, including the query's own.
    pub connections: Option<u64>,
    /// Number of requests that are queued or in work.
    pub outstanding: Option<u64>,
    /// Number of nodes.
    pub znodes: Option<u64>,
    /// Number of watches; `None` if the server has the word `mntr` disabled.
    pub watches: Option<u64>,
    /// Why the server reported nothing.
    pub reason: Option<String>,
}

/// Whether and how a server answered. Serialized and printed as the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerState {
    /// The server serves clients.
    Serving,
    /// The server has no quorum.
    NoQuorum,
    /// The server has the words disabled.
    WordsOff,
    /// The port uses TLS, and the transport does not.
    Tls,
    /// The port accepts connections, but the answer is not ZooKeeper's.
    Foreign,
    /// Nothing accepts connections, or the name is unknown.
    Down,
}

impl ServerState {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Serving, Self::NoQuorum, Self::WordsOff, Self::Tls, Self::Foreign, Self::Down];

    /// Returns the name, such as `no_quorum`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::NoQuorum => "no_quorum",
            Self::WordsOff => "words_off",
            Self::Tls => "tls",
            Self::Foreign => "foreign",
            Self::Down => "down",
        }
    }

    /// Returns true if a ZooKeeper server may be behind the port.
    pub fn is_answer(self) -> bool {
        !matches!(self, Self::Foreign | Self::Down)
    }
}

impl Vitals {
    /// Queries a server with the four-letter words `srvr` and `mntr`, without a session. A server that does
    /// not report is no error: `state` and `reason` say why.
    ///
    /// `patience` limits each step: resolving the name, connecting to each of its addresses, and each answer.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn query(transport: &dyn Transport, server: &ServerAddress, patience: Duration) -> Self {
        let vitals = Self::unknown(server);
        let resolved = timeout(patience, transport.resolve(server)).await;
        let addresses = match resolved.unwrap_or_else(|elapsed| Err(elapsed.into())) {
            Ok(addresses) if !addresses.is_empty() => addresses,
            Ok(_) => return vitals.without_answer(ServerState::Down, "the name has no address"),
            Err(error) => return vitals.without_answer(ServerState::Down, error.to_string()),
        };
        let (address, bytes) = match exchange_any(transport, server, &addresses, b"srvr", patience).await {
            Ok((address, bytes, _)) => (address, bytes),
            Err(missed) => {
                let reasons: Vec<_> =
                    missed.iter().map(|(address, error)| format!("{address}: {error}")).collect();
                return vitals.without_answer(ServerState::Down, reasons.join("; "));
            }
        };
        let vitals = Self { address: Some(address.to_string()), ..vitals };
        match Answer::of(&bytes) {
            Answer::Server(description) => {
                let monitor = exchange(transport, server, address, b"mntr", patience).await;
                vitals.with(description, &bytes, &monitor.unwrap_or_default())
            }
            Answer::WordsOff => vitals.without_answer(ServerState::WordsOff, "srvr is disabled"),
            Answer::NotServing => vitals.without_answer(ServerState::NoQuorum, "the ensemble has no quorum"),
            Answer::Silence | Answer::Foreign(_) if talks_tls(transport, server, address, patience).await => {
                vitals.without_answer(ServerState::Tls, "the port uses TLS")
            }
            Answer::Silence => {
                let reason = "no answer: it may hang, or refuse more connections (maxClientCnxns)";
                vitals.without_answer(ServerState::Foreign, reason)
            }
            Answer::Foreign(line) => {
                vitals.without_answer(ServerState::Foreign, format!("the answer begins with {line:?}"))
            }
        }
    }

    /// Returns true if the server reports that it has no quorum, also if it still answers reads.
    pub fn lacks_quorum(&self) -> bool {
        self.state == ServerState::NoQuorum || self.mode.as_deref() == Some(READ_ONLY)
    }

    fn unknown(server: &ServerAddress) -> Self {
        Self {
            server: server.to_string(),
            address: None,
            state: ServerState::Down,
            software: None,
            version: None,
            mode: None,
            zxid: None,
            latency_min_ms: None,
            latency_avg_ms: None,
            latency_max_ms: None,
            connections: None,
            outstanding: None,
            znodes: None,
            watches: None,
            reason: None,
        }
    }

    fn without_answer(self, state: ServerState, reason: impl Into<String>) -> Self {
        Self { state, reason: Some(reason.into()), ..self }
    }

    /// Returns the vitals with the figures in the answers to `srvr` and `mntr`. The latter may be refused.
    fn with(self, description: Description, server: &[u8], monitor: &[u8]) -> Self {
        let (server, monitor) = (String::from_utf8_lossy(server), String::from_utf8_lossy(monitor));
        let number = |key| value(&server, key)?.parse().ok();
        let mut latency = description.latency.split('/').map(|part| part.parse().ok());
        let mut latency = || latency.next().flatten();
        Self {
            state: ServerState::Serving,
            software: Some(description.software),
            version: Some(description.version),
            mode: Some(description.mode).filter(|mode| !mode.is_empty()),
            zxid: value(&server, "Zxid:").map(str::to_owned),
            latency_min_ms: latency(),
            latency_avg_ms: latency(),
            latency_max_ms: latency(),
            connections: number("Connections:"),
            outstanding: number("Outstanding:"),
            znodes: number("Node count:"),
            watches: value(&monitor, "zk_watch_count").and_then(|count| count.parse().ok()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown() -> Vitals {
        Vitals::unknown(&ServerAddress::all_of("zk1:2181").unwrap().remove(0))
    }

    fn with(srvr: &str, mntr: &str) -> Vitals {
        unknown().with(Description::of(srvr), srvr.as_bytes(), mntr.as_bytes())
    }

    #[test]
    fn figures_come_from_both_answers_and_unknown_ones_are_none() {
        let srvr = "Zookeeper version: 3.8.4-9316c2a, built on 2024-02-12\nLatency min/avg/max: 0/0.5/12\n\
            Received: 9\nSent: 8\nConnections: 3\nOutstanding: 1\nZxid: 0x100000002\nMode: follower\nNode count: 5\n";
        let vitals = with(srvr, "zk_version\t3.8.4\nzk_watch_count\t7\n");
        assert_eq!((vitals.state, vitals.mode.as_deref()), (ServerState::Serving, Some("follower")));
        assert_eq!(
            (vitals.zxid.as_deref(), vitals.znodes, vitals.watches),
            (Some("0x100000002"), Some(5), Some(7))
        );
        assert_eq!((vitals.connections, vitals.outstanding), (Some(3), Some(1)));
        let latency = [vitals.latency_min_ms, vitals.latency_avg_ms, vitals.latency_max_ms];
        assert_eq!(latency, [Some(0.0), Some(0.5), Some(12.0)]);
        let old = "Zookeeper version: 3.4.14\nMode: standalone\n";
        let vitals = with(old, "mntr is not executed");
        assert_eq!(
            (vitals.version.as_deref(), vitals.watches, vitals.latency_avg_ms),
            (Some("3.4.14"), None, None)
        );
    }

    #[test]
    fn a_server_that_only_answers_reads_lacks_quorum() {
        assert!(with("Zookeeper version: 3.8.4\nMode: read-only\n", "").lacks_quorum());
        assert!(!with("Zookeeper version: 3.8.4\nMode: follower\n", "").lacks_quorum());
        let silent = unknown().without_answer(ServerState::NoQuorum, "");
        assert!(silent.lacks_quorum() && !unknown().lacks_quorum());
    }
}
