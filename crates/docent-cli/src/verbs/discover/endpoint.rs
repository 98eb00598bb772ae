use docent::discovery::Instance;
use std::net::Ipv6Addr;

/// Where callers reach an instance, as it may be written to the configuration of another program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// Name or IP address, IPv6 in brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Endpoint {
    /// Returns the endpoint of an instance, or `None` if it has no address or no port. The port is the TLS
    /// port if there is one.
    ///
    /// # Errors
    /// The value and the rule, if the address or the port is not valid: other programs may write anything.
    pub(super) fn of<P>(instance: &Instance<P>) -> Result<Option<Self>, String> {
        let Some((address, port)) = instance.address.as_deref().zip(instance.ssl_port.or(instance.port))
        else {
            return Ok(None);
        };
        let host = host(address).ok_or_else(|| {
            format!(
                "its address {address:?} must be an IP address or a name of letters, digits, '.', '-' and '_' that does \
                 not start with '-'"
            )
        })?;
        if port == 0 {
            return Err("its port 0 must be from 1 to 65535".to_owned());
        }
        Ok(Some(Self { host, port }))
    }
}

/// Returns an address as a host in URLs, or `None` if it is neither a name nor an IP address.
fn host(address: &str) -> Option<String> {
    let inner = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if inner.unwrap_or(address).parse::<Ipv6Addr>().is_ok() {
        return Some(format!("[{}]", inner.unwrap_or(address)));
    }
    is_made_of(address, ".-_").then(|| address.to_owned())
}

/// Returns true for a text of ASCII letters, digits and `others`, which is not empty, and which no program
/// takes for an option.
pub(super) fn is_made_of(text: &str, others: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.chars().all(|char| char.is_ascii_alphanumeric() || others.contains(char))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_hosts_and_nothing_else_is() {
        for (address, wanted) in [
            ("10.0.0.7", Some("10.0.0.7")),
            ("db-1.my_shop.example", Some("db-1.my_shop.example")),
            ("::1", Some("[::1]")),
            ("[2001:db8::1]", Some("[2001:db8::1]")),
            ("", None),
            ("[]", None),
            ("[10.0.0.7]", None),
            ("fe80::1%eth0", None),
            ("unix:/run/x", None),
            ("10.0.0.7:80", None),
            ("10.0.0.7;", None),
            ("-oProxyCommand", None),
            ("a b", None),
            ("a\nb", None),
            ("a/b", None),
            ("bücher", None),
        ] {
            assert_eq!(host(address).as_deref(), wanted, "{address:?}");
        }
    }

    #[test]
    fn the_port_is_that_of_tls_if_there_is_one() {
        let port = |instance: &Instance| Endpoint::of(instance).unwrap().map(|endpoint| endpoint.port);
        let plain = Instance::new("orders", "h", 80);
        assert_eq!(port(&plain), Some(80));
        assert_eq!(port(&plain.clone().ssl_port(443)), Some(443));
        assert_eq!(port(&Instance::named("orders")), None);
        assert!(Endpoint::of(&plain.ssl_port(0)).unwrap_err().contains("port 0"));
    }
}
