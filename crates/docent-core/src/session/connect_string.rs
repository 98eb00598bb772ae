use crate::error::{Error, ErrorKind};
use docent_proto::validate_path;
use std::fmt;
use std::net::Ipv6Addr;

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
            return Err(invalid(text, "must name at least one server, for example \"zk1:2181\""));
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            return Err(with_scheme(text, scheme, rest));
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
        if servers.contains('@') {
            return Err(invalid(text, "must not contain credentials: pass them to auth_digest()"));
        }
        let servers: Vec<_> =
            servers.split(',').map(|server| parse_server(text, server.trim())).collect::<Result<_, _>>()?;
        Ok(Self { servers, chroot: chroot.to_owned() })
    }
}

/// Returns the error of a connect string that begins like a URL.
fn with_scheme(text: &str, scheme: &str, rest: &str) -> Error {
    if text.contains('@') {
        return invalid(text, "must not have a scheme or credentials");
    }
    invalid(text, &format!("must not have a scheme: write {rest:?} instead of \"{scheme}://…\""))
}

fn parse_server(text: &str, server: &str) -> Result<ServerAddress, Error> {
    if let Some(separator) = server.chars().find(|c| *c == ';' || c.is_whitespace()) {
        return Err(invalid(text, &format!("must separate servers with ',', not with {separator:?}")));
    }
    let (host, port) = split_port(server).map_err(|rule| invalid_server(text, server, rule))?;
    if host.is_empty() {
        return Err(invalid_server(text, server, "must have a host name or an IP address"));
    }
    if host.contains(char::is_control) {
        return Err(invalid_server(text, server, "must not have control characters in its host name"));
    }
    let port = match port {
        None => DEFAULT_PORT,
        // `parse` would accept a sign.
        Some(port) => match port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse()) {
            Some(Ok(port)) if port > 0 => port,
            _ => {
                let rule = "must have a port from 1 to 65535 after its ':', or no ':' for port 2181";
                return Err(invalid_server(text, server, rule));
            }
        },
    };
    Ok(ServerAddress { host: host.to_owned(), port })
}

/// Splits a server into its host and its port, if it has one. An error is the broken rule.
fn split_port(server: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(rest) = server.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or("has a '[' without a ']'")?;
        return match port.strip_prefix(':') {
            None if !port.is_empty() => Err("must have a ':' between ']' and its port"),
            port => Ok((host, port)),
        };
    }
    match server.rsplit_once(':') {
        None => Ok((server, None)),
        Some((host, port)) if !host.contains(':') => Ok((host, Some(port))),
        Some((host, _)) if [server, host].iter().any(|text| text.parse::<Ipv6Addr>().is_ok()) => {
            Err("must have its IPv6 address in brackets, as in \"[::1]:2181\"")
        }
        Some(_) => Err("must have at most one ':', before its port; brackets enclose an IPv6 address"),
    }
}

/// Returns a connect string that is safe to print: everything before an '@' could be a password.
pub(crate) fn without_credentials(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, rest)) => format!("***@{rest}"),
        None => text.to_owned(),
    }
}

/// Returns the error of one server in a connect string. The server is not printed if it could be a part of a
/// password.
fn invalid_server(text: &str, server: &str, rule: &str) -> Error {
    match text.contains('@') {
        true => invalid(text, &format!("has a server that {rule}")),
        false => invalid(text, &format!("has the server {server:?}, which {rule}")),
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
            ("", "must name at least one server, for example \"zk1:2181\""),
            (" ", "must name at least one server, for example \"zk1:2181\""),
            ("http://zk1:2181", "must not have a scheme: write \"zk1:2181\" instead of \"http://…\""),
            ("zk1:2181;zk2:2181", "must separate servers with ',', not with ';'"),
            ("zk1:2181 zk2:2181", "must separate servers with ',', not with ' '"),
            ("zk1\tzk2", "must separate servers with ',', not with '\\t'"),
            ("a,,b", "has the server \"\", which must have a host name or an IP address"),
            ("/shop", "has the server \"\", which must have a host name or an IP address"),
            (":2181", "has the server \":2181\", which must have a host name or an IP address"),
            ("a\u{1}", "has the server \"a\\u{1}\", which must not have control characters in its host name"),
            (
                "a,b:0",
                "has the server \"b:0\", which must have a port from 1 to 65535 after its ':', or no ':' for port 2181",
            ),
            (
                "a:",
                "has the server \"a:\", which must have a port from 1 to 65535 after its ':', or no ':' for port 2181",
            ),
            (
                "a:+1",
                "has the server \"a:+1\", which must have a port from 1 to 65535 after its ':', or no ':' for port 2181",
            ),
            (
                "a:b",
                "has the server \"a:b\", which must have a port from 1 to 65535 after its ':', or no ':' for port 2181",
            ),
            (
                "a:70000",
                "has the server \"a:70000\", which must have a port from 1 to 65535 after its ':', or no ':' for port 2181",
            ),
            (
                "::1",
                "has the server \"::1\", which must have its IPv6 address in brackets, as in \"[::1]:2181\"",
            ),
            (
                "2001:db8::1:2:2181",
                "has the server \"2001:db8::1:2:2181\", which must have its IPv6 address in brackets, as in \"[::1]:2181\"",
            ),
            (
                "a:1:2",
                "has the server \"a:1:2\", which must have at most one ':', before its port; brackets enclose an IPv6 address",
            ),
            ("[::1", "has the server \"[::1\", which has a '[' without a ']'"),
            ("[::1]2181", "has the server \"[::1]2181\", which must have a ':' between ']' and its port"),
            ("a/b//c", "chroot must not have an empty segment"),
            ("a/b/", "chroot must not end with '/'"),
            ("h1:2181/a,h2:2181/a", "must have its chroot once, after the last server, and without a comma"),
            ("h1/,h2/", "must have its chroot once, after the last server, and without a comma"),
            ("h1/a,b", "must have its chroot once, after the last server, and without a comma"),
        ] {
            let error = ConnectString::parse(text).unwrap_err().to_string();
            assert_eq!(error, format!("connect: connect string {text:?} {rule}"));
        }
    }

    #[test]
    fn a_password_in_a_connect_string_is_not_repeated() {
        for text in [
            "user:secret@host:2181",
            "zk://user:secret@host",
            "user:se,cret@h",
            "user:secret/x@h",
            "us,h:se;cret@h",
        ] {
            let error = ConnectString::parse(text).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("cret"), "{error}");
        }
    }
}
