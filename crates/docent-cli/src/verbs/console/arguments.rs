use crate::args::duration;
use crate::exit::Failure;
use clap::Args;
use docent_console::{Access, AccessError};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Serve a live web page of locks, elections, services, queues, configuration and sessions.
///
/// docent prints the address of the page and serves it until a signal comes. A lost connection to the servers
/// is shown on the page and does not end docent. The page changes nothing in ZooKeeper unless --allow-actions
/// is given; standard error then reports each action with who did it.
///
/// By default, only this machine can reach the page. Any other address needs --token-file or
/// --basic-auth-file, and either TLS (--https-cert, --https-key) or --plaintext.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Address and port of the page, port 0 for any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8484", value_parser = address)]
    pub(super) listen: SocketAddr,

    /// Path at and below which recipes are shown
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(super) root: String,

    /// Allow actions: ask holders to leave, delete nodes of contenders, disable and enable instances, roll
    /// back configuration, requeue and delete dead letters
    #[arg(long)]
    pub(super) allow_actions: bool,

    /// Never show payloads and values
    #[arg(long)]
    pub(super) no_data: bool,

    /// File with a token of one line, which browsers ask for and programs send as `Authorization: Bearer`;
    /// only its owner may read the file
    #[arg(long, value_name = "FILE", conflicts_with = "basic_auth_file")]
    token_file: Option<PathBuf>,

    /// File with lines `user:password` for basic authentication; only its owner may read the file
    #[arg(long, value_name = "FILE")]
    basic_auth_file: Option<PathBuf>,

    /// PEM file of the page's certificate and its chain; enables TLS. Read again when it changes
    #[arg(long, value_name = "FILE", requires = "https_key")]
    https_cert: Option<PathBuf>,

    /// PEM file of the key of the page's certificate
    #[arg(long, value_name = "FILE", requires = "https_cert")]
    https_key: Option<PathBuf>,

    /// Serve addresses of other machines without TLS, for example behind a proxy that ends TLS
    #[arg(long, conflicts_with = "https_cert")]
    plaintext: bool,

    /// Name by which browsers reach the page, besides localhost and IP addresses; repeat for several
    #[arg(long = "host", value_name = "NAME", value_parser = host)]
    pub(super) hosts: Vec<String>,

    /// Time after which a lock's holder is reported as old
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub(super) holder_age: Duration,

    /// Time after which the first item of a queue is reported as old
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub(super) head_age: Duration,
}

impl Arguments {
    /// Checks that another machine can reach the page only with credentials and over TLS, unless TLS was
    /// waived.
    ///
    /// # Errors
    /// `Usage` with what is missing.
    pub(super) fn check_exposure(&self) -> Result<(), Failure> {
        let address = self.listen.ip().to_canonical();
        if address.is_loopback() {
            return Ok(());
        }
        let missing = match (self.has_access(), self.files_of_tls().is_some() || self.plaintext) {
            (true, true) => return Ok(()),
            (false, true) => "give --token-file or --basic-auth-file",
            (true, false) => "give --https-cert and --https-key, or --plaintext to serve it without TLS",
            (false, false) => {
                "give --token-file or --basic-auth-file, and --https-cert and --https-key or --plaintext"
            }
        };
        Err(Failure::usage(format!("other machines can reach the page at {address}: {missing}")))
    }

    fn has_access(&self) -> bool {
        self.token_file.is_some() || self.basic_auth_file.is_some()
    }

    /// Returns who may use the page, read from the given file.
    ///
    /// # Errors
    /// `Usage` if the file cannot be used.
    pub(super) fn access(&self) -> Result<Access, Failure> {
        let access = match (&self.token_file, &self.basic_auth_file) {
            (Some(file), _) => Access::token_file(file),
            (None, Some(file)) => Access::basic_file(file),
            (None, None) => Ok(Access::open()),
        };
        access.map_err(|error: AccessError| Failure::usage(error.to_string()))
    }

    /// Returns the files of the certificate and its key.
    pub(super) fn files_of_tls(&self) -> Option<(PathBuf, PathBuf)> {
        Some((self.https_cert.clone()?, self.https_key.clone()?))
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let rule = "must be an IP address and a port, such as 127.0.0.1:8484 or [::1]:8484";
    text.parse().map_err(|_| rule.to_owned())
}

fn host(text: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let (name, port) = text.split_once(':').unwrap_or((text, "0"));
    let rule = "must be a name such as zk.example.org, without scheme and path";
    let is_name = !name.is_empty() && name.bytes().all(is_part) && port.parse::<u16>().is_ok();
    if is_name { Ok(text.to_owned()) } else { Err(rule.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        console: Arguments,
    }

    fn parse(words: &[&str]) -> Result<Arguments, clap::Error> {
        Ok(Command::try_parse_from(["console"].iter().chain(words))?.console)
    }

    #[test]
    fn other_machines_need_credentials_and_tls_or_its_waiver() {
        let check =
            |words: &[&str]| parse(words).unwrap().check_exposure().map_err(|error| error.to_string());
        for local in ["127.0.0.1:0", "127.9.9.9:80", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            assert_eq!(check(&["--listen", local]), Ok(()), "{local}");
        }
        for other in ["0.0.0.0:0", "10.0.0.1:80", "[::]:0", "[::ffff:10.0.0.1]:0"] {
            let check = |words: &[&str]| check(&[&["--listen", other], words].concat());
            let tls = ["--https-cert", "c", "--https-key", "k"];
            for access in [["--token-file", "t"], ["--basic-auth-file", "b"]] {
                assert_eq!(check(&[&access[..], &tls].concat()), Ok(()), "{other}");
                assert_eq!(check(&[&access[..], &["--plaintext"]].concat()), Ok(()), "{other}");
                assert!(check(&access).unwrap_err().contains("--https-cert and --https-key, or --plaintext"));
            }
            assert!(check(&tls).unwrap_err().ends_with("give --token-file or --basic-auth-file"));
            assert!(check(&["--plaintext"]).unwrap_err().ends_with("give --token-file or --basic-auth-file"));
            assert!(check(&[]).unwrap_err().contains("and --https-cert"));
        }
    }

    #[test]
    fn options_that_exclude_or_need_each_other_are_refused() {
        for words in [
            &["--token-file", "t", "--basic-auth-file", "b"][..],
            &["--https-cert", "c"],
            &["--https-key", "k"],
            &["--https-cert", "c", "--https-key", "k", "--plaintext"],
            &["--listen", "localhost:80"],
            &["--listen", "127.0.0.1"],
            &["--host", "https://zk.example"],
            &["--host", "zk.example/a"],
            &["--host", ""],
            &["--holder-age", "soon"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
        assert_eq!(
            parse(&["--host", "a.example", "--host", "b:8443"]).unwrap().hosts,
            ["a.example", "b:8443"]
        );
    }
}
