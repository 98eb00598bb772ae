use axum::http::{HeaderMap, Uri, header};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Names under which browsers may reach a console, besides `localhost` and IP addresses.
///
/// A page of another origin can make a browser send requests here by resolving its own name to this
/// address (DNS rebinding). The browser then sends that name, which is not among these. IP addresses cannot
/// be rebound, and browsers resolve `localhost` themselves.
#[derive(Debug, Clone)]
pub(super) struct Hosts(Vec<String>);

/// A host that is not accepted, as text for the reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrongHost(pub(super) String);

impl Hosts {
    pub(super) fn new(names: Vec<String>) -> Self {
        Self(names.into_iter().map(|name| without_dot(&name.to_ascii_lowercase()).to_owned()).collect())
    }

    /// Checks the host that a request was sent to. A request names it in the header `Host`, in the target, or
    /// in both.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), WrongHost> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (host, authority) = (hosts.next(), uri.authority());
        if hosts.next().is_some() || (host.is_none() && authority.is_none()) {
            return Err(WrongHost("a request must have one header Host\n".to_owned()));
        }
        if let Some(host) = host {
            self.check_name(&String::from_utf8_lossy(host.as_bytes()))?;
        }
        authority.map_or(Ok(()), |authority| self.check_name(authority.as_str()))
    }

    fn check_name(&self, host: &str) -> Result<(), WrongHost> {
        match self.contains(host) {
            true => Ok(()),
            false => Err(WrongHost(format!(
                "the host {host:?} is not a name of this console; start it with --host NAME to accept the name, \
                 or use its IP address\n"
            ))),
        }
    }

    fn contains(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        if let Some(rest) = host.strip_prefix('[') {
            let Some((address, port)) = rest.split_once(']') else { return false };
            return address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || is_port(port));
        }
        let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
        if !port.is_empty() && !is_port(port) {
            return false;
        }
        let name = without_dot(name);
        let is_known =
            |known: &String| known == name || (known.contains(':') && *known == format!("{name}{port}"));
        name == "localhost" || name.parse::<Ipv4Addr>().is_ok() || self.0.iter().any(is_known)
    }
}

/// Returns the name without the dot that marks it as complete.
fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|digits| {
        digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_configured_names_are_accepted() {
        let hosts = Hosts::new(vec!["ZK.example".to_owned(), "other.example:8443".to_owned()]);
        for good in [
            "localhost",
            "LocalHost:8484",
            "localhost.:1",
            "127.0.0.1",
            "10.0.0.1:80",
            "[::1]",
            "[fe80::1]:8484",
            "zk.EXAMPLE",
            "zk.example:443",
            "zk.example.",
            "other.example:8443",
        ] {
            assert!(hosts.contains(good), "{good:?}");
        }
        for bad in [
            "",
            ":8484",
            ".",
            "evil.example",
            "zk.example.evil.example",
            "notlocalhost",
            "localhost.evil.example",
            "localhost:80.evil.example",
            "localhost:",
            "localhost:99999",
            "localhost:+80",
            "127.0.0.1.nip.example",
            "127.1",
            "[::1",
            "[::1]evil",
            "[zk.example]",
            "::1",
            "user@localhost",
            "localhost, evil.example",
            "other.example",
            "other.example:80",
            "\u{fffd}",
        ] {
            assert!(!hosts.contains(bad), "{bad:?}");
        }
    }
}
