use docent_core::Error;
use std::borrow::Cow;
use std::net::IpAddr;

/// Maximum length of a service name, id or address in bytes.
const LONGEST: usize = 1024;

/// Checks that `text` can be the name of a node, and is suitable for settings files. `what` names it in the
/// error.
pub(crate) fn segment(what: &str, text: &str) -> Result<(), Error> {
    let rule = if text.is_empty() {
        "must not be empty".to_owned()
    } else if text.len() > LONGEST {
        return refuse(format!("{what} of {} bytes must be at most {LONGEST} bytes long", text.len()));
    } else if text == "." || text == ".." {
        "must not be \".\" or \"..\"".to_owned()
    } else if text.contains('/') {
        "must not contain '/'".to_owned()
    } else if text.chars().any(char::is_whitespace) {
        "must not contain spaces".to_owned()
    } else if text.chars().any(char::is_control) {
        "must not contain control characters".to_owned()
    } else {
        return Ok(());
    };
    refuse(format!("{what} {text:?} {rule}"))
}

/// Checks that `text` can be a host name or an IP address that callers can reach.
pub(crate) fn address(text: &str) -> Result<(), Error> {
    let rule = if text.contains("://") {
        "must be a host name or an IP address, not a URL"
    } else {
        segment("address", text)?;
        match ip(text) {
            Some(ip) if ip.to_canonical().is_unspecified() => {
                "must be one that callers can reach, not the address on which a server listens on all interfaces"
            }
            None if text.contains(':') => "must not contain a port, which is a separate argument",
            _ => return Ok(()),
        }
    };
    refuse(format!("address {text:?} {rule}"))
}

/// Returns true for a host name or an IP address that means the own host everywhere.
pub(crate) fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || ip(host).is_some_and(|ip| ip.to_canonical().is_loopback())
}

/// Returns a host as URLs contain it: an IPv6 address is in brackets.
pub(crate) fn bracketed(host: &str) -> Cow<'_, str> {
    let is_bare_v6 = host.contains(':') && !host.starts_with('[');
    if is_bare_v6 { format!("[{host}]").into() } else { host.into() }
}

/// Returns the IP address that `host` is, with or without brackets. The zone of an IPv6 address is ignored.
fn ip(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.split_once('%') {
        Some((address, _)) => address.parse().ok().map(IpAddr::V6),
        None => bare.parse().ok(),
    }
}

fn refuse(detail: String) -> Result<(), Error> {
    Err(Error::invalid_input("register", detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_name_is_named_with_its_rule() {
        for (text, rule) in [
            ("", "must not be empty"),
            (".", "must not be \".\" or \"..\""),
            ("..", "must not be \".\" or \"..\""),
            ("a/b", "must not contain '/'"),
            ("a b", "must not contain spaces"),
            ("a\u{a0}b", "must not contain spaces"),
            ("a\u{1}b", "must not contain control characters"),
        ] {
            let error = segment("service name", text).unwrap_err().to_string();
            assert_eq!(error, format!("register: service name {text:?} {rule}"));
        }
        for (text, rule) in [
            ("10.0.0.1:80", "must not contain a port, which is a separate argument"),
            ("orders:80", "must not contain a port, which is a separate argument"),
            ("[::1]:80", "must not contain a port, which is a separate argument"),
            ("http://orders", "must be a host name or an IP address, not a URL"),
            ("orders/", "must not contain '/'"),
        ] {
            let error = address(text).unwrap_err().to_string();
            assert_eq!(error, format!("register: address {text:?} {rule}"));
        }
        for text in ["0.0.0.0", "::", "[::]", "::ffff:0.0.0.0"] {
            let error = address(text).unwrap_err().to_string();
            assert!(
                error.contains(&format!("address {text:?} must be one that callers can reach")),
                "{error}"
            );
        }
        for text in [
            "orders",
            "orders.example.com",
            "10.0.0.1",
            "::1",
            "[::1]",
            "fe80::1%eth0",
            "localhost",
            "127.0.0.1",
        ] {
            address(text).unwrap();
        }
        let long = segment("id", &"x".repeat(1025)).unwrap_err().to_string();
        assert_eq!(long, "register: id of 1025 bytes must be at most 1024 bytes long");
        for text in ["orders", "com.shop.Orders:1.0", "ünïcode", "100%", "_", "x".repeat(1024).as_str()] {
            segment("id", text).unwrap();
        }
    }

    #[test]
    fn loopback_addresses_are_recognised_by_name_and_number() {
        for host in [
            "localhost",
            "LOCALHOST.",
            "app.localhost",
            "127.0.0.1",
            "127.1.2.3",
            "::1",
            "[::1]",
            "::ffff:127.0.0.1",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example.com", "10.0.0.1", "orders", "::2"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
