use super::limits::{self, TIME, limit};
use super::sasl_users;
use crate::{Builder, Dialect, Limits, Server, UnknownDialect};
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Default port, the same as ZooKeeper's.
const PORT: u16 = 2181;

const HELP: &str = "\
An embedded server that speaks ZooKeeper's client protocol, for development and tests.
It is a single node that keeps everything in memory, and does not replace an ensemble.

Usage: {name} [OPTIONS]

Options:
      --host ADDRESS             Address to listen on; default 127.0.0.1
      --port PORT                Port to listen on, 0 for any free port; default 2181
      --allow-remote             Permit an address that other machines can reach
      --keep FILE                Load nodes and sessions from FILE, and save them there at a clean
                                 stop; NOT DURABLE: a kill loses all changes since the start
      --tick TIME                Unit of session expiry; default 2s
      --min-session-timeout TIME Minimum session timeout; default two ticks
      --max-session-timeout TIME Maximum session timeout; default twenty ticks
      --container-check TIME     Interval of the deletion of empty containers and expired
                                 TTL nodes; default 1m
      --ttl-nodes                Allow nodes with a time to live
      --super-digest DIGEST      Super user that passes every ACL check: the name, a colon, and
                                 the SHA-1 of user:password in Base64
      --sasl-users FILE          Users that clients can authenticate as with SASL (DIGEST-MD5):
                                 one user:password per line; the server reads FILE at its start
      --require-sasl             Refuse clients that have not authenticated with SASL
      --words LIST               Four-letter words to answer besides srvr, such as mntr,ruok;
                                 default *, which means all of them
      --dialect NAME             Answer as zookeeper (default), zookeeper-3.5, zookeeper-3.4,
                                 keeper-2025 or keeper-2026 (ClickHouse Keeper)
      --zxid-in-events           Put transaction ids into watch events, as ZooKeeper 3.9 does
      --seed NUMBER              Seed of session passwords, for reproducible runs; transaction ids
                                 then start at 1. By default, passwords are random, and transaction
                                 ids are above those of earlier servers
  -h, --help                     Print this help
  -V, --version                  Print the version

Limits on the resources of clients, which bound the memory of the server:
{limits}
TIME is a whole number followed by ms, s or m, such as 500ms. BYTES is a whole number, or one
followed by KiB, MiB or GiB, such as 64MiB. If a client exceeds a limit, the server logs a warning
with the name of the limit, in which _ replaces -.

SIGTERM, SIGINT and SIGHUP stop the server cleanly; a second signal stops it immediately.
Exit codes: 0 after a clean stop, 1 if the server cannot start or save its state, 2 for invalid
options, 128 plus the signal number after a second signal.

The environment variable RUST_LOG sets the filter of the log on standard error; default warn.
";

/// Returns the help text of a program that users call `name`.
pub(super) fn help(name: &str) -> String {
    HELP.replace("{name}", name).replace("{limits}", &limits::help())
}

/// What the command line asks for.
#[derive(Debug)]
pub(super) enum Order {
    Serve(Box<Options>),
    Help,
    Version,
}

/// Options of the server to start.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) builder: Builder,
    pub(super) keep: Option<PathBuf>,
    /// Maximum number of open connections.
    pub(super) connections: usize,
}

/// Option values as parsed. Values that depend on each other are checked after the last option.
struct Raw {
    builder: Builder,
    keep: Option<PathBuf>,
    limits: Limits,
    host: IpAddr,
    port: u16,
    allow_remote: bool,
    sasl_users: Option<PathBuf>,
    require_sasl: bool,
    tick: Duration,
    shortest: Option<Duration>,
    longest: Option<Duration>,
}

/// Parses the command line. An error names the option, its value and the rule that the value violates.
pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Order, String> {
    let mut parser = Parser::from_args(args);
    let mut raw = Raw::new();
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Ok(Order::Help),
            Arg::Short('V') | Arg::Long("version") => return Ok(Order::Version),
            Arg::Long(name) => {
                let name = name.to_owned();
                raw = raw.option(&name, &mut parser)?;
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    raw.finish()
}

impl Raw {
    fn new() -> Self {
        Self {
            builder: Server::builder(),
            keep: None,
            limits: Limits::default(),
            host: Ipv4Addr::LOCALHOST.into(),
            port: PORT,
            allow_remote: false,
            sasl_users: None,
            require_sasl: false,
            tick: Duration::from_secs(2),
            shortest: None,
            longest: None,
        }
    }

    /// Applies a long option, reading its value if it takes one.
    fn option(mut self, name: &str, parser: &mut Parser) -> Result<Self, String> {
        match name {
            "allow-remote" => self.allow_remote = true,
            "ttl-nodes" => self.builder = self.builder.ttl_nodes(true),
            "super-digest" => self.builder = self.builder.super_digest(text(name, parser)?),
            "sasl-users" => self.sasl_users = Some(value(name, parser)?.into()),
            "require-sasl" => self.require_sasl = true,
            "words" => self.builder = words(self.builder, &text(name, parser)?),
            "seed" => self.builder = self.builder.seed(seed(&text(name, parser)?)?),
            "dialect" => self.builder = self.builder.dialect(dialect(&text(name, parser)?)?),
            "zxid-in-events" => self.builder = self.builder.zxid_in_events(true),
            "keep" => self.keep = Some(value(name, parser)?.into()),
            "host" => self.host = host(&text(name, parser)?)?,
            "port" => self.port = port(&text(name, parser)?)?,
            "tick" => self.tick = time(name, parser)?,
            "min-session-timeout" => self.shortest = Some(time(name, parser)?),
            "max-session-timeout" => self.longest = Some(time(name, parser)?),
            "container-check" => self.builder = self.builder.container_check(time(name, parser)?),
            _ => {
                let limit = limit(name).ok_or_else(|| Arg::Long(name).unexpected().to_string())?;
                let text = text(name, parser)?;
                let set = limit.set(&mut self.limits, &text);
                set.map_err(|rule| format!("--{name} {text:?} {rule}"))?;
            }
        }
        Ok(self)
    }

    fn finish(mut self) -> Result<Order, String> {
        self.builder = self.with_sasl()?;
        let Self { builder, keep, limits, host, port, allow_remote, tick, shortest, longest, .. } = self;
        if !host.is_loopback() && !allow_remote {
            return Err(format!(
                "--host {host} is not a loopback address, so other machines could reach the server; --allow-remote permits this"
            ));
        }
        let shortest = shortest.unwrap_or(tick.saturating_mul(2));
        let longest = longest.unwrap_or(tick.saturating_mul(20).max(shortest));
        if shortest > longest {
            return Err(format!(
                "--min-session-timeout {shortest:?} must not exceed --max-session-timeout {longest:?}"
            ));
        }
        let builder =
            builder.bind(SocketAddr::new(host, port)).tick(tick).session_timeouts(shortest, longest);
        let connections = limits.connections;
        let mut builder = builder.limits(limits);
        if allow_remote {
            builder = builder.allow_remote();
        }
        if let Some(file) = &keep {
            builder = builder.keep(file);
        }
        Ok(Order::Serve(Box::new(Options { builder, keep, connections })))
    }

    /// Returns the builder with the users of `--sasl-users`.
    fn with_sasl(&self) -> Result<Builder, String> {
        let mut builder = self.builder.clone();
        let Some(file) = &self.sasl_users else {
            if self.require_sasl {
                return Err(
                    "--require-sasl needs --sasl-users: without users, no client is accepted".to_owned()
                );
            }
            return Ok(builder);
        };
        let users = sasl_users::read(file).map_err(|rule| format!("--sasl-users {file:?} {rule}"))?;
        for (user, password) in users {
            builder = builder.sasl_user(user, password);
        }
        Ok(if self.require_sasl { builder.require_sasl() } else { builder })
    }
}

fn dialect(name: &str) -> Result<Dialect, String> {
    name.parse().map_err(|error: UnknownDialect| format!("--dialect: {error}"))
}

fn value(name: &str, parser: &mut Parser) -> Result<OsString, String> {
    parser.value().map_err(|_| format!("--{name} needs a value"))
}

fn text(name: &str, parser: &mut Parser) -> Result<String, String> {
    value(name, parser)?.string().map_err(|error| format!("--{name}: {error}"))
}

fn words(builder: Builder, list: &str) -> Builder {
    builder.four_letter_words(list.split(',').map(str::trim))
}

fn host(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        _ => text.parse().map_err(|_| format!("--host {text:?} must be an IP address or localhost")),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("--seed {text:?} must be a whole number from 0 to {}", u64::MAX))
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("--port {text:?} must be a number from 0 to {}", u16::MAX))
}

fn time(name: &str, parser: &mut Parser) -> Result<Duration, String> {
    let text = text(name, parser)?;
    limits::time(&text).ok_or_else(|| format!("--{name} {text:?} {TIME}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(args: &[&str]) -> String {
        parse(args.iter().map(OsString::from)).unwrap_err()
    }

    #[test]
    fn every_option_is_taken_and_in_the_help() {
        let values = [
            ("host", "::1"),
            ("port", "0"),
            ("keep", "file"),
            ("tick", "500ms"),
            ("min-session-timeout", "1s"),
            ("max-session-timeout", "2m"),
            ("container-check", "1s"),
            ("words", "srvr, ruok"),
            ("seed", "7"),
            ("connections", "400"),
            ("queued-bytes", "64MiB"),
        ];
        let mut args: Vec<OsString> =
            values.iter().map(|(name, value)| format!("--{name}={value}").into()).collect();
        args.extend(["--allow-remote", "--zxid-in-events"].map(OsString::from));
        let others = ["allow-remote", "zxid-in-events", "sasl-users", "require-sasl"];
        for name in values.map(|(name, _)| name).iter().chain(&others) {
            assert!(help("docent-server").contains(&format!("  --{name} ")), "{name}");
        }
        let Ok(Order::Serve(options)) = parse(args) else { panic!() };
        assert_eq!((options.keep, options.connections), (Some("file".into()), 400));
        assert!(matches!(parse(["-V".into(), "--nonsense".into()]), Ok(Order::Version)));
        assert!(matches!(parse(["--help".into()]), Ok(Order::Help)));
    }

    #[test]
    fn the_help_fits_into_a_terminal_of_a_hundred_columns() {
        let help = help("docent-server");
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }

    #[test]
    fn a_refusal_names_the_option_its_value_and_the_rule() {
        for (args, text) in [
            (&["--port", "x"][..], "--port \"x\" must be a number from 0 to 65535"),
            (&["--port", "65536"], "--port \"65536\" must be a number from 0 to 65535"),
            (&["--host", "here"], "--host \"here\" must be an IP address or localhost"),
            (&["--tick", "2"], "--tick \"2\" must be a whole number above 0 in ms, s or m, such as 500ms"),
            (&["--tick", "0s"], "--tick \"0s\" must be a whole number above 0 in ms, s or m, such as 500ms"),
            (&["--keep"], "--keep needs a value"),
            (&["--seed", "-1"], "--seed \"-1\" must be a whole number from 0 to 18446744073709551615"),
            (&["--nodes", "few"], "--nodes \"few\" must be a whole number"),
            (
                &["--queued-bytes", "64MB"],
                "--queued-bytes \"64MB\" must be a whole number of bytes, or one in KiB, MiB or GiB, such as 64MiB",
            ),
            (&["--nonsense"], "invalid option '--nonsense'"),
            (&["-x"], "invalid option '-x'"),
            (&["--require-sasl"], "--require-sasl needs --sasl-users: without users, no client is accepted"),
            (&["--sasl-users"], "--sasl-users needs a value"),
            (
                &["--sasl-users", "/missing/users"],
                "--sasl-users \"/missing/users\" must be readable: No such file or directory (os error 2)",
            ),
            (&["file"], "unexpected argument \"file\""),
            (
                &["--host", "0.0.0.0"],
                "--host 0.0.0.0 is not a loopback address, so other machines could reach the server; --allow-remote permits this",
            ),
            (
                &["--min-session-timeout", "9s", "--max-session-timeout", "8s"],
                "--min-session-timeout 9s must not exceed --max-session-timeout 8s",
            ),
        ] {
            assert_eq!(refusal(args), text);
        }
        assert!(refusal(&["--allow-remote=yes"]).contains("--allow-remote"));
    }
}
