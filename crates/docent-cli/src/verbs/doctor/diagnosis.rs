//! Findings and remedies for one server.

use super::finding::{Cause, Finding};
use docent::client::{Error, ErrorKind};
use docent::inspect::words::{Answer, Missed};
use docent::transport::ServerAddress;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

const NAME: &str = "name";
const PORT: &str = "port";
const SERVER: &str = "server";
const SESSION: &str = "session";

const PORT_REMEDY: &str = "correct the port in --connect: it is clientPort in zoo.cfg, 2181 by default";
const QUORUM_REMEDY: &str = "start the other servers of the ensemble, or fix the network between them: a majority must run \
     and reach each other on the ports of the server.N lines in zoo.cfg";

pub(super) fn known_name(server: &ServerAddress, addresses: &[SocketAddr]) -> Finding {
    let addresses: Vec<_> = addresses.iter().map(|address| address.ip().to_string()).collect();
    Finding::ok(NAME, format!("{} resolves to {}", server.host, addresses.join(", ")))
}

pub(super) fn unknown_name(server: &ServerAddress, error: Option<&io::Error>) -> Finding {
    let reason = error.map_or_else(|| "the name has no address".to_owned(), ToString::to_string);
    let text = format!("cannot resolve the name {}: {reason}", server.host);
    let remedy = "correct the name in --connect, or add it to DNS or /etc/hosts";
    Finding::failure(NAME, Cause::Unreachable, text, remedy)
}

/// Returns the finding for an address that accepted no connection.
pub(super) fn unreachable(address: SocketAddr, error: &io::Error) -> Finding {
    let (text, remedy) = match error.kind() {
        io::ErrorKind::ConnectionRefused => (
            format!("nothing listens at {address}: connection refused"),
            format!("start the server, or {PORT_REMEDY}"),
        ),
        io::ErrorKind::TimedOut => (
            format!("no answer from {address}: the connection attempt timed out"),
            "check for a firewall between this machine and the server, and that the server is up".to_owned(),
        ),
        _ => (format!("cannot reach {address}: {error}"), "fix the network to the server".to_owned()),
    };
    Finding::failure(PORT, Cause::Unreachable, text, remedy)
}

/// Returns the finding for an address of a name that accepted no connection, while `next` did.
pub(super) fn skipped_address((address, error): &Missed, next: SocketAddr) -> Finding {
    Finding::ok(PORT, format!("cannot reach {address} ({error}); clients connect to {next} instead"))
}

/// Compares the protocol at the port with the protocol that the client is set to use. Returns `None` for
/// silence, which opening a session has to explain.
pub(super) fn protocol(answer: &Answer, talks_tls: bool, with_tls: bool) -> Option<Finding> {
    if talks_tls {
        return Some(match with_tls {
            true => Finding::ok(PORT, "the port uses TLS"),
            false => Finding::failure(
                PORT,
                Cause::Unreachable,
                "the port uses TLS, but this client does not",
                "give --tls-ca (and --tls-cert and --tls-key if the servers require them), or use the port of clientPort",
            ),
        });
    }
    if with_tls && !matches!(answer, Answer::Silence | Answer::Foreign(_)) {
        let text = "the port serves ZooKeeper without TLS, but this client is set to use TLS";
        let remedy = "use the port of secureClientPort in zoo.cfg, or drop the TLS options";
        return Some(Finding::failure(PORT, Cause::Unreachable, text, remedy));
    }
    match answer {
        Answer::Foreign(line) => {
            let text = format!("the port is not ZooKeeper: its answer begins with {line:?}");
            Some(Finding::failure(PORT, Cause::Unreachable, text, PORT_REMEDY))
        }
        Answer::NotServing => {
            let text = "the server runs but serves no clients: the ensemble has no quorum";
            Some(Finding::failure(SERVER, Cause::Unreachable, text, QUORUM_REMEDY))
        }
        Answer::WordsOff => {
            let text = "version and mode are unknown: the server has the four-letter word srvr disabled";
            let remedy = "set 4lw.commands.whitelist=srvr,conf in zoo.cfg to see more";
            Some(Finding::warning(SERVER, text, remedy))
        }
        Answer::Server(description) if description.is_read_only() => {
            let text = format!(
                "{} {}, read-only: the server has lost its quorum and rejects writes",
                description.software, description.version
            );
            Some(Finding::failure(SERVER, Cause::Unreachable, text, QUORUM_REMEDY))
        }
        Answer::Server(description) => {
            let latency = format!("request latency {} ms (min/avg/max)", description.latency);
            Some(Finding::ok(
                SERVER,
                format!("{} {}, {}; {latency}", description.software, description.version, description.mode),
            ))
        }
        _ => None,
    }
}

pub(super) fn session(opened: Duration, read: Duration) -> Finding {
    Finding::ok(SESSION, format!("opened in {}; a read took {}", millis(opened), millis(read)))
}

/// Returns the finding for a port that accepts connections but opened no session.
pub(super) fn no_session(error: &Error, after: Duration) -> Finding {
    match error.kind() {
        ErrorKind::InvalidInput => {
            let remedy = "correct the setting that the finding names";
            Finding::failure(SESSION, Cause::Setting, error.to_string(), remedy)
        }
        ErrorKind::AuthFailed | ErrorKind::NoAuth => {
            let remedy = "correct the credentials in --auth-file or --sasl-file, the ticket of --sasl-gssapi, or the \
                 certificate of --tls-cert";
            Finding::failure(SESSION, Cause::Permission, error.to_string(), remedy)
        }
        _ => {
            let text = format!(
                "the server accepts connections, but no session was opened within {}: {error}",
                millis(after)
            );
            let remedy = format!(
                "the server may be cut off from its leader: {QUORUM_REMEDY}; or the port is not ZooKeeper"
            );
            Finding::failure(SESSION, Cause::Unreachable, text, remedy)
        }
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn server(mode: &str) -> Answer {
        let text = format!("Zookeeper version: 3.8.4\nLatency min/avg/max: 0/1/2\nMode: {mode}\n");
        Answer::of(text.as_bytes())
    }

    fn level(answer: &Answer, talks_tls: bool, with_tls: bool) -> Option<Level> {
        protocol(answer, talks_tls, with_tls).map(|finding| finding.level)
    }

    #[test]
    fn tls_on_one_side_only_is_a_failure() {
        assert_eq!(level(&Answer::Silence, true, false), Some(Level::Failure));
        assert_eq!(level(&server("leader"), false, true), Some(Level::Failure));
        assert_eq!(level(&Answer::Silence, true, true), Some(Level::Ok));
    }

    #[test]
    fn a_writable_server_is_ok() {
        for mode in ["leader", "follower", "observer", "standalone"] {
            assert_eq!(level(&server(mode), false, false), Some(Level::Ok), "{mode}");
        }
        assert_eq!(level(&server("read-only"), false, false), Some(Level::Failure));
        assert_eq!(level(&Answer::NotServing, false, false), Some(Level::Failure));
    }

    #[test]
    fn another_protocol_is_reported_with_its_answer() {
        let finding = protocol(&Answer::Foreign("HTTP/1.1 400".into()), false, false).unwrap();
        assert!(
            finding.text.contains("not ZooKeeper") && finding.text.contains("HTTP/1.1 400"),
            "{finding:?}"
        );
        assert!(finding.remedy.unwrap().contains("clientPort"));
    }

    #[test]
    fn a_disabled_four_letter_word_is_no_failure() {
        assert_eq!(level(&Answer::WordsOff, false, false), Some(Level::Warning));
    }
}
