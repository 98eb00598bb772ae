use super::percent::unescape;
use std::collections::BTreeMap;

/// A URL as Dubbo writes it, in which parameters are not percent-encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: String,
    /// Host name or IP address, without the brackets of an IPv6 address.
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) path: String,
    pub(crate) parameters: BTreeMap<String, String>,
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// What is wrong with the text, without any of its values.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or("not a URL")?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        // A user name and a password may precede an '@'.
        let authority = authority.rsplit_once('@').map_or(authority, |(_, authority)| authority);
        let (host, port) = split_authority(authority)?;
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Ok(Self {
            scheme: scheme.to_owned(),
            host,
            port,
            path: path.to_owned(),
            parameters: pairs.map(|(name, value)| (unescape(name), unescape(value))).collect(),
        })
    }

    /// Returns a parameter; one without text counts as missing, as for Dubbo.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// Splits `host:port`.
///
/// # Errors
/// If the port is not a number.
pub(crate) fn split_authority(authority: &str) -> Result<(Option<String>, Option<u16>), String> {
    let (host, port) = match authority.rsplit_once(':') {
        // The colons of an address in brackets belong to the address.
        Some((host, port)) if !port.ends_with(']') => {
            let port = port.parse().map_err(|_| "port must be a number from 0 to 65535")?;
            (host, Some(port))
        }
        _ => (authority, None),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Ok((Some(host.to_owned()).filter(|host| !host.is_empty()), port))
}

/// Returns the value of a flag as Java's `Boolean.parseBoolean` reads it.
pub(crate) fn is_true(text: &str) -> bool {
    text.eq_ignore_ascii_case("true")
}
