//! Texts and remedies for what one server does.

use super::answer::Answer;
use super::finding::{Cause, Finding};
use super::words::Missed;
use docent::client::{Error, ErrorKind};
use docent::transport::ServerAddress;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

const NAME: &str = "name";
const PORT: &str = "port";
const SERVER: &str = "server";
const SESSION: &str = "session";

const MEND_PORT: &str = "mend the port in --connect: it is clientPort in zoo.cfg, 2181 by default";
const MEND_QUORUM: &str = "start the other servers of the ensemble, or mend the network between them: a majority must run \
     and reach each other on the ports of the server.N lines in zoo.cfg";

pub(super) fn known_name(server: &ServerAddress, addresses: &[SocketAddr]) -> Finding {
    let addresses: Vec<_> = addresses.iter().map(|address| address.ip().to_string()).collect();
    Finding::ok(NAME, format!("{} is {}", server.host, addresses.join(", ")))
}

pub(super) fn unknown_name(server: &ServerAddress, error: Option<&io::Error>) -> Finding {
    let reason = error.map_or_else(|| "it has no address".to_owned(), ToString::to_string);
    let text = format!("the name {} cannot be resolved: {reason}", server.host);
    let remedy = "mend the name in --connect, or add it to the name service or /etc/hosts";
    Finding::failure(NAME, Cause::Unreachable, text, remedy)
}

/// Nothing took the link.
pub(super) fn unreachable(address: SocketAddr, error: &io::Error) -> Finding {
    let (text, remedy) = match error.kind() {
        io::ErrorKind::ConnectionRefused => (
            format!("nobody listens at {address}: connection refused"),
            format!("start the server, or {MEND_PORT}"),
        ),
        io::ErrorKind::TimedOut => (
            format!("no answer from {address}: packets are lost on the way"),
            "look for a firewall between this machine and the server, and whether the server is up"
                .to_owned(),
        ),
        _ => (format!("{address} cannot be reached: {error}"), "mend the network to the server".to_owned()),
    };
    Finding::failure(PORT, Cause::Unreachable, text, remedy)
}

/// One address of a name did not take the link, and `next` did.
pub(super) fn passed_over((address, error): &Missed, next: SocketAddr) -> Finding {
    Finding::ok(PORT, format!("{address} cannot be reached ({error}): clients go on to {next}"))
}

/// Compares what talks at the port with what the client is set to talk. Nothing for silence, which a session
/// has to explain.
pub(super) fn protocol(answer: &Answer, talks_tls: bool, with_tls: bool) -> Option<Finding> {
    if talks_tls {
        return Some(match with_tls {
            true => Finding::ok(PORT, "the port talks TLS"),
            false => Finding::failure(
                PORT,
                Cause::Unreachable,
                "the port talks TLS, and this client does not",
                "give --tls-ca (and --tls-cert and --tls-key where the servers ask for them), or use clientPort",
            ),
        });
    }
    if with_tls && !matches!(answer, Answer::Silence | Answer::Foreign(_)) {
        let text = "the port talks ZooKeeper without TLS, and this client is set to TLS";
        let remedy = "use the port of secureClientPort in zoo.cfg, or leave out the TLS options";
        return Some(Finding::failure(PORT, Cause::Unreachable, text, remedy));
    }
    match answer {
        Answer::Silence => None,
        Answer::Foreign(line) => {
            let text = format!("what listens there is not ZooKeeper: it answers {line:?}");
            Some(Finding::failure(PORT, Cause::Unreachable, text, MEND_PORT))
        }
        Answer::NotServing => {
            let text = "the server runs and serves nobody: the ensemble has no quorum";
            Some(Finding::failure(SERVER, Cause::Unreachable, text, MEND_QUORUM))
        }
        Answer::WordsOff => {
            let text = "version and mode are not told: the word srvr is switched off";
            let remedy = "set 4lw.commands.whitelist=srvr,conf in zoo.cfg to see more here";
            Some(Finding::warning(SERVER, text, remedy))
        }
        Answer::Server(told) if told.is_read_only() => {
            let text =
                format!("ZooKeeper {}, read-only: it has lost its quorum, and takes no writes", told.version);
            Some(Finding::failure(SERVER, Cause::Unreachable, text, MEND_QUORUM))
        }
        Answer::Server(told) => {
            let latency = format!("its requests took {} ms (min/avg/max)", told.latency);
            Some(Finding::ok(SERVER, format!("ZooKeeper {}, {}; {latency}", told.version, told.mode)))
        }
    }
}

pub(super) fn session(opened: Duration, read: Duration) -> Finding {
    Finding::ok(SESSION, format!("opened in {}, a read takes {}", millis(opened), millis(read)))
}

/// The port took the link, and no session came of it.
pub(super) fn no_session(error: &Error, after: Duration) -> Finding {
    match error.kind() {
        ErrorKind::InvalidInput => {
            let remedy = "mend the setting that is named";
            Finding::failure(SESSION, Cause::Setting, error.to_string(), remedy)
        }
        ErrorKind::AuthFailed | ErrorKind::NoAuth => {
            let remedy = "mend the credentials in --auth-file, or the certificate of --tls-cert";
            Finding::failure(SESSION, Cause::Permission, error.to_string(), remedy)
        }
        _ => {
            let text =
                format!("the link is taken, but no session was opened within {}: {error}", millis(after));
            let remedy =
                format!("the server may be cut off from its leader: {MEND_QUORUM}; or it is not ZooKeeper");
            Finding::failure(SESSION, Cause::Unreachable, text, remedy)
        }
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::super::answer::Description;
    use super::super::finding::Level;
    use super::*;

    fn server(mode: &str) -> Answer {
        let (version, latency) = ("3.8.4".to_owned(), "0/1/2".to_owned());
        Answer::Server(Description { version, mode: mode.to_owned(), latency })
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
    fn a_server_that_can_write_is_well() {
        for mode in ["leader", "follower", "observer", "standalone"] {
            assert_eq!(level(&server(mode), false, false), Some(Level::Ok), "{mode}");
        }
        assert_eq!(level(&server("read-only"), false, false), Some(Level::Failure));
        assert_eq!(level(&Answer::NotServing, false, false), Some(Level::Failure));
    }

    #[test]
    fn what_is_not_zookeeper_is_shown_with_its_answer() {
        let finding = protocol(&Answer::Foreign("HTTP/1.1 400".into()), false, false).unwrap();
        assert!(
            finding.text.contains("not ZooKeeper") && finding.text.contains("HTTP/1.1 400"),
            "{finding:?}"
        );
        assert!(finding.remedy.unwrap().contains("clientPort"));
    }

    #[test]
    fn a_word_that_is_switched_off_is_no_failure() {
        assert_eq!(level(&Answer::WordsOff, false, false), Some(Level::Warning));
    }
}
