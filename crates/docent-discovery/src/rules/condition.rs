use super::Provider;
use super::rule::{ANY, ANY_HOST};
use crate::layout::ServiceSide;
use serde::Deserialize;
use std::net::IpAddr;

/// Condition `match` of a rule in the form of Dubbo 3.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Condition {
    address: Option<AddressMatch>,
    provider_address: Option<AddressMatch>,
    service: Option<AnyOf>,
    app: Option<AnyOf>,
    param: Option<Vec<Parameter>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct AddressMatch {
    wildcard: Option<String>,
    /// Range of addresses; the name is Dubbo's.
    cird: Option<String>,
    exact: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct AnyOf {
    oneof: Vec<TextMatch>,
}

#[derive(Debug, Clone, Deserialize)]
struct Parameter {
    key: String,
    value: TextMatch,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct TextMatch {
    exact: Option<String>,
    prefix: Option<String>,
    regex: Option<String>,
    noempty: Option<String>,
    empty: Option<String>,
    wildcard: Option<String>,
}

impl Condition {
    /// Checks that the condition can be evaluated.
    ///
    /// # Errors
    /// The member that cannot.
    pub(super) fn check(&self) -> Result<(), String> {
        let lists = [&self.service, &self.app].into_iter().flatten().flat_map(|list| &list.oneof);
        let mut texts = lists.chain(self.param.iter().flatten().map(|parameter| &parameter.value));
        if texts.any(|text| text.regex.is_some()) {
            return Err("match with a regex is not supported".to_owned());
        }
        let ranges = [&self.address, &self.provider_address].into_iter().flatten();
        match ranges.filter_map(|address| address.cird.as_deref()).any(|range| range_of(range).is_none()) {
            true => Err("match with a cird must be an IP address, '/' and a number of bits".to_owned()),
            false => Ok(()),
        }
    }

    /// Returns true if a provider meets the condition of a rule for this side. The addresses and the
    /// applications in a rule for consumers are those of a consumer, which a view does not know.
    pub(super) fn is_met_by(&self, provider: &Provider, side: Option<ServiceSide>) -> bool {
        let is_consumers = side == Some(ServiceSide::Consumer);
        let key = &provider.key;
        let group = if key.group.is_empty() { String::new() } else { format!("{}/", key.group) };
        let version = if key.version.is_empty() { String::new() } else { format!(":{}", key.version) };
        let service = format!("{group}{}{version}", key.interface);
        self.address.as_ref().is_none_or(|address| match is_consumers {
            true => address.is_any(),
            false => address.matches(provider.host(), provider.host()),
        }) && self
            .provider_address
            .as_ref()
            .is_none_or(|address| address.matches(&provider.address(), provider.host()))
            && self.service.as_ref().is_none_or(|list| list.matches(Some(&service)))
            && self
                .app
                .as_ref()
                .is_none_or(|list| list.matches(provider.application().filter(|_| !is_consumers)))
            && self.param.iter().flatten().all(|parameter| {
                parameter.value.matches(provider.url.parameters.get(&parameter.key).map(String::as_str))
            })
    }
}

impl AddressMatch {
    fn is_any(&self) -> bool {
        self.cird.is_none() && matches!(self.wildcard.as_deref(), Some(ANY_HOST | ANY))
    }

    /// Returns true if an address, or its host for a range, matches.
    fn matches(&self, address: &str, host: &str) -> bool {
        if self.cird.as_deref().is_some_and(|range| is_in_range(range, host)) {
            return true;
        }
        match (&self.wildcard, &self.exact) {
            (Some(wildcard), _) => wildcard == ANY_HOST || is_glob_of(wildcard, address),
            (None, Some(exact)) => exact == address,
            (None, None) => false,
        }
    }
}

impl AnyOf {
    fn matches(&self, text: Option<&str>) -> bool {
        self.oneof.iter().any(|one| one.matches(text))
    }
}

impl TextMatch {
    fn matches(&self, text: Option<&str>) -> bool {
        match (self, text) {
            (Self { exact: Some(exact), .. }, Some(text)) => exact == text,
            (Self { prefix: Some(prefix), .. }, Some(text)) => text.starts_with(prefix),
            (Self { wildcard: Some(wildcard), .. }, Some(text)) => wildcard == ANY || wildcard == text,
            (Self { empty: Some(_), .. }, text) => text.is_none_or(str::is_empty),
            (Self { noempty: Some(_), .. }, text) => text.is_some_and(|text| !text.is_empty()),
            _ => false,
        }
    }
}

/// Returns true if a text matches a pattern with at most one `*`.
fn is_glob_of(pattern: &str, text: &str) -> bool {
    match pattern.rsplit_once('*') {
        None => pattern == text,
        Some((start, end)) => {
            text.len() >= start.len() + end.len() && text.starts_with(start) && text.ends_with(end)
        }
    }
}

/// Parses a range such as `10.0.0.0/8`.
fn range_of(range: &str) -> Option<(IpAddr, u32)> {
    let (network, bits) = range.split_once('/')?;
    let (network, bits): (IpAddr, u32) = (network.parse().ok()?, bits.parse().ok()?);
    let longest = if network.is_ipv4() { 32 } else { 128 };
    (bits <= longest).then_some((network, bits))
}

fn is_in_range(range: &str, host: &str) -> bool {
    match (range_of(range), host.parse()) {
        (Some((IpAddr::V4(network), bits)), Ok(IpAddr::V4(host))) => {
            (u32::from(network) ^ u32::from(host)).leading_zeros() >= bits
        }
        (Some((IpAddr::V6(network), bits)), Ok(IpAddr::V6(host))) => {
            (u128::from(network) ^ u128::from(host)).leading_zeros() >= bits
        }
        _ => false,
    }
}
