use super::bounds::Bounds;
use super::diagnosis;
use super::finding::Finding;
use docent::client::{Error, Options};
use docent::inspect::words::{self, Answer, Description};
use docent::transport::{ServerAddress, TcpTransport, Transport};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Upper limit for the time of each query to a server.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Facts about one server, and the findings that follow from them.
#[derive(Debug, Default)]
pub(super) struct ServerReport {
    pub(super) findings: Vec<Finding>,
    /// Facts that the server reported by `srvr`.
    pub(super) description: Option<Description>,
    /// Tick that the server reported by `conf`.
    pub(super) tick: Option<Duration>,
    /// Session timeouts that the server grants, measured only if it does not report its tick.
    pub(super) bounds: Option<Bounds>,
    /// True if the server opened a session.
    pub(super) opened: bool,
}

/// Resolves a server's name, queries the server, and opens a session on this server only.
pub(super) async fn check(server: &ServerAddress, options: &Options) -> ServerReport {
    let mut report = ServerReport::default();
    report.run(server, options).await;
    let name = server.to_string();
    report.findings = report.findings.into_iter().map(|finding| finding.at(&name)).collect();
    report
}

impl ServerReport {
    async fn run(&mut self, server: &ServerAddress, options: &Options) {
        let addresses = match TcpTransport.resolve(server).await {
            Ok(addresses) if !addresses.is_empty() => addresses,
            other => return self.findings.push(diagnosis::unknown_name(server, other.err().as_ref())),
        };
        self.findings.push(diagnosis::known_name(server, &addresses));
        if self.query(server, &addresses, options).await {
            self.open_session(server, options).await;
        }
    }

    /// Queries the server with four-letter words. Returns false if opening a session would be pointless.
    async fn query(&mut self, server: &ServerAddress, addresses: &[SocketAddr], options: &Options) -> bool {
        let patience = patience(options);
        let asked = words::exchange_any(&TcpTransport, server, addresses, b"srvr", patience).await;
        let (address, mut answer) = match asked {
            Ok((address, bytes, missed)) => {
                self.findings.extend(missed.iter().map(|missed| diagnosis::skipped_address(missed, address)));
                (address, Answer::of(&bytes))
            }
            Err(missed) => {
                self.findings
                    .extend(missed.iter().map(|(address, error)| diagnosis::unreachable(*address, error)));
                return false;
            }
        };
        let is_strange = matches!(answer, Answer::Silence | Answer::Foreign(_));
        let talks_tls = is_strange && words::talks_tls(&TcpTransport, server, address, patience).await;
        if answer == Answer::Silence && !talks_tls {
            // Servers of line-based protocols answer only after the end of a line.
            let bytes = words::exchange(&TcpTransport, server, address, b"srvr\r\n\r\n", patience).await;
            answer = Answer::of(&bytes.unwrap_or_default());
        }
        self.findings.extend(diagnosis::protocol(&answer, talks_tls, options.tls_ca_file.is_some()));
        if let Answer::Server(description) = answer {
            let conf = words::exchange(&TcpTransport, server, address, b"conf", patience).await;
            self.tick = tick(&conf.unwrap_or_default());
            self.description = Some(description);
        }
        !self.findings.iter().any(Finding::is_failure)
    }

    async fn open_session(&mut self, server: &ServerAddress, options: &Options) {
        let start = Instant::now();
        match read_once(server, options).await {
            Ok((opened, read)) => {
                self.opened = true;
                self.findings.push(diagnosis::session(opened, read));
                if self.tick.is_none() {
                    self.bounds = Bounds::of(server, options).await.ok();
                }
            }
            Err(error) => self.findings.push(diagnosis::no_session(&error, start.elapsed())),
        }
    }
}

/// Opens a session on `server` only, and reads once. Returns the times of both.
async fn read_once(server: &ServerAddress, options: &Options) -> Result<(Duration, Duration), Error> {
    let builder = alone(server, options).builder()?;
    let start = Instant::now();
    let client = builder.connect().await?;
    let opened = start.elapsed();
    let start = Instant::now();
    let read = client.exists("/").await;
    let took = start.elapsed();
    client.close().await;
    read.map(|_| (opened, took))
}

/// Returns the settings for a short session on `server` only.
pub(super) fn alone(server: &ServerAddress, options: &Options) -> Options {
    let mut options = options.clone();
    options.connect = server.to_string();
    // Whether a server has its quorum is what the check finds out.
    options.read_only = false;
    options.namespace = None;
    let patience = options.operation_timeout.unwrap_or(PATIENCE);
    options.operation_timeout = Some(patience.min(2 * PATIENCE));
    options
}

/// Returns the time limit for each query to a server.
fn patience(options: &Options) -> Duration {
    options.operation_timeout.unwrap_or(PATIENCE).min(PATIENCE)
}

/// Returns the server's tick from its answer to `conf`, or `None` if that word is disabled.
fn tick(conf: &[u8]) -> Option<Duration> {
    let text = String::from_utf8_lossy(conf);
    let value = text.lines().find_map(|line| line.strip_prefix("tickTime="))?;
    value.trim().parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_is_in_the_configuration() {
        assert_eq!(tick(b"clientPort=2181\ntickTime=2000\n"), Some(Duration::from_secs(2)));
        assert_eq!(tick(b"conf is not executed because it is not in the whitelist.\n"), None);
        assert_eq!(tick(b"tickTime=soon\n"), None);
    }

    #[test]
    fn the_operation_timeout_also_limits_queries() {
        let mut options = Options::new("zk1:2181");
        assert_eq!(patience(&options), PATIENCE);
        options.operation_timeout = Some(Duration::from_millis(100));
        assert_eq!(patience(&options), Duration::from_millis(100));
        options.operation_timeout = Some(2 * PATIENCE);
        assert_eq!(patience(&options), PATIENCE);
    }
}
