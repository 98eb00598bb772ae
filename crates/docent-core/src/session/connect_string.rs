use crate::error::{Error, ErrorKind};
use docent_proto::validate_path;
use std::fmt;

const DEFAULT_PORT: u16 = 2181;

/// A parsed `host:port,host:port/chroot`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectString {
    pub(crate) servers: Vec<ServerAddress>,
    /// Without a trailing slash; empty if there is no chroot.
    pub(crate) chroot: String,
}

/// A server as named in the connect string, not yet resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// Name or IP address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl ServerAddress {
    /// Returns the servers that a connect string names, in order, without the chroot.
    ///
    /// # Errors
    /// `InvalidInput` if the connect string breaks a rule.
    pub fn all_of(connect_string: &str) -> Result<Vec<Self>, Error> {
        ConnectString::parse(connect_string).map(|parsed| parsed.servers)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl ConnectString {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        if text.trim().is_empty() {
            return Err(invalid(text, "must name at least one server"));
        }
        let (servers, chroot) = match text.find('/') {
            Some(slash) => text.split_at(slash),
            None => (text, ""),
        };
        // Putting a chroot after each server is a common mistake, and a comma is hardly ever part of a node's
        // name.
        if chroot.contains(',') && !planted!(CommaInChroot) {
            return Err(invalid(
                text,
                "must have its chroot once, after the last server, and without a comma",
            ));
        }
        let chroot = if chroot == "/" { "" } else { chroot };
        if !chroot.is_empty() {
            validate_path(chroot).map_err(|error| invalid(text, &format!("chroot {}", error.rule)))?;
        }
        let servers: Vec<_> =
            servers.split(',').map(|server| parse_server(text, server.trim())).collect::<Result<_, _>>()?;
        Ok(Self { servers, chroot: chroot.to_owned() })
    }
}

fn parse_server(text: &str, server: &str) -> Result<ServerAddress, Error> {
    if server.contains('@') {
        return Err(invalid(text, "must not contain credentials"));
    }
    let (host, port) = match server.strip_prefix('[') {
        Some(rest) => {
            let (host, port) =
                rest.split_once(']').ok_or_else(|| invalid(text, "has a '[' without a ']'"))?;
            (host, port.strip_prefix(':'))
        }
        None => match server.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                return Err(invalid(text, "must have IPv6 addresses in brackets"));
            }
            Some((host, port)) => (host, Some(port)),
            None => (server, None),
        },
    };
    if host.is_empty() {
        return Err(invalid(text, "must name a host for every server"));
    }
    if host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(invalid(text, "must not have spaces in the name of a host"));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(invalid(text, "must have ports from 1 to 65535")),
        },
    };
    Ok(ServerAddress { host: host.to_owned(), port })
}

/// Returns a connect string that is safe to print: everything before an '@' could be a password.
pub(crate) fn without_credentials(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, rest)) => format!("***@{rest}"),
        None => text.to_owned(),
    }
}

fn invalid(text: &str, rule: &str) -> Error {
    let shown = without_credentials(text);
    Error::new(ErrorKind::InvalidInput, "connect").because(format!("connect string {shown:?} {rule}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Vec<String> {
        ConnectString::parse(text).unwrap().servers.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn servers_ports_and_chroot_are_distinguished() {
        let parsed = ConnectString::parse("zk1:2182, zk2,[::1]:99/shop/eu").unwrap();
        assert_eq!(parsed.chroot, "/shop/eu");
        assert_eq!(servers("zk1:2182, zk2,[::1]:99/shop/eu"), ["zk1:2182", "zk2:2181", "[::1]:99"]);
        assert_eq!(ConnectString::parse("zk1/").unwrap().chroot, "");
    }

    #[test]
    fn the_servers_of_a_connect_string_can_be_listed() {
        let servers = ServerAddress::all_of("zk1,[::1]:99/shop").unwrap();
        assert_eq!(servers.iter().map(ToString::to_string).collect::<Vec<_>>(), ["zk1:2181", "[::1]:99"]);
        assert_eq!(ServerAddress::all_of("a,,b").unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn bad_input_is_named_with_the_rule() {
        for (text, rule) in [
            ("", "at least one server"),
            ("a b", "must not have spaces"),
            ("a,,b", "must name a host"),
            (":2181", "must name a host"),
            ("a:0", "ports from 1 to 65535"),
            ("a:70000", "ports from 1 to 65535"),
            ("a:b", "ports from 1 to 65535"),
            ("::1", "in brackets"),
            ("[::1", "without a ']'"),
            ("a/b//c", "empty segment"),
            ("h1:2181/a,h2:2181/a", "chroot once, after the last server"),
            ("h1/,h2/", "chroot once, after the last server"),
            ("h1/a,b", "without a comma"),
        ] {
            let error = ConnectString::parse(text).unwrap_err().to_string();
            assert!(error.contains(rule) && error.contains(&format!("{text:?}")), "{text}: {error}");
        }
    }

    #[test]
    fn a_password_in_a_connect_string_is_not_repeated() {
        let error = ConnectString::parse("user:secret@host:2181").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
}
