use super::{Condition, Provider, ServiceKey};
use crate::instance::read_weight;
use crate::layout::{ServiceSide, Url, decode, is_true, split_authority};

/// Host of rules that apply to any host.
pub(super) const ANY_HOST: &str = "0.0.0.0";
/// Value of a condition that any value meets.
pub(super) const ANY: &str = "*";

/// Where a rule is written, in ascending precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// Name of a node in the folder `configurators` of a service.
    Folder,
    /// Node of an application.
    Application,
    /// Node of a service.
    Service,
}

/// Rule that changes providers.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) origin: Origin,
    /// True if the rule sets only what is missing.
    pub(super) is_absent: bool,
    /// True for the form of Dubbo 2.7 and later, whose host names a provider if its side is the provider's.
    pub(super) is_sided: bool,
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) priority: i64,
    /// Side whose URLs the rule changes; `None` for both.
    pub(super) side: Option<ServiceSide>,
    pub(super) application: Option<String>,
    /// Service to which the rule applies; `None` for any.
    pub(super) service: Option<ServiceKey>,
    /// Addresses of providers to which the rule applies; any if empty.
    pub(super) addresses: Vec<String>,
    /// Parameters that a provider must have.
    pub(super) parameters: Vec<(String, String)>,
    pub(super) condition: Option<Condition>,
    pub(super) weight: Option<u32>,
    pub(super) disabled: Option<bool>,
}

impl Rule {
    /// Parses the rules in the names of nodes, each with a value that `reject` gets if the name is no valid
    /// rule. `empty://` removes all of them.
    pub(super) fn of_names<'a, T>(
        names: impl Iterator<Item = (&'a str, T)>,
        mut reject: impl FnMut(T, String),
    ) -> Vec<Self> {
        let mut rules = Vec::new();
        for (name, of) in names {
            let url = decode(name).ok_or_else(|| "the node's name is not percent-encoded".to_owned());
            match url.and_then(|url| Url::parse(&url)) {
                Ok(url) if url.scheme == "empty" => return Vec::new(),
                Ok(url) => match Self::of_url(&url, Origin::Folder) {
                    Ok(rule) => rules.extend(rule),
                    Err(reason) => reject(of, reason),
                },
                Err(reason) => reject(of, reason),
            }
        }
        rules
    }

    /// Parses a rule of the form `override://host:port/interface?parameters`. Returns `None` if the rule is
    /// turned off, is for another side, or is a copy of a newer rule for old consumers.
    ///
    /// # Errors
    /// What is wrong with the rule, without any of its values.
    pub(super) fn of_url(url: &Url, origin: Origin) -> Result<Option<Self>, String> {
        let is_absent = match url.scheme.as_str() {
            "override" => false,
            "absent" => true,
            _ => return Err("scheme must be override, absent or empty".to_owned()),
        };
        let is_off = url.parameter("enabled").is_some_and(|enabled| !is_true(enabled));
        let side = match url.parameter("side") {
            Some("provider") => Some(ServiceSide::Provider),
            Some("consumer") => Some(ServiceSide::Consumer),
            None | Some(ANY) => None,
            Some(_) => return Ok(None),
        };
        if is_off || url.parameter("compatible_config").is_some() {
            return Ok(None);
        }
        let (weight, disabled) = changes(url.parameter("weight"), url.parameter("disabled"))?;
        let version = url.parameter("configVersion");
        // Dubbo applies conditions on parameters to rules before v3.0 only.
        let conditions = url.parameters.iter().filter(|_| !version.is_some_and(|v| v.starts_with("v3.0")));
        let conditions = conditions.filter_map(|(name, value)| Some((name.strip_prefix('~')?, value)));
        let text = |name: &str| url.parameter(name).unwrap_or_default().to_owned();
        let interface = url.parameter("interface").unwrap_or(&url.path);
        let service =
            ServiceKey { interface: interface.to_owned(), group: text("group"), version: text("version") };
        Ok(Some(Self {
            origin,
            is_absent,
            is_sided: version.is_some(),
            host: url.host.clone().ok_or("a rule must have a host")?,
            port: url.port.filter(|port| *port != 0),
            priority: url.parameter("priority").map_or(Ok(0), |priority| {
                priority.parse().map_err(|_| "priority must be a whole number".to_owned())
            })?,
            side,
            application: url.parameter("application").map(str::to_owned),
            service: (interface != ANY).then_some(service),
            addresses: addresses(
                url.parameter("providerAddresses").into_iter().flat_map(|list| list.split(',')),
            ),
            parameters: conditions.map(|(name, value)| (name.to_owned(), value.clone())).collect(),
            condition: None,
            weight,
            disabled,
        }))
    }

    /// Returns true if the rule changes this provider for a view, which is a consumer at an unknown address
    /// and of an unknown application.
    pub(super) fn applies_to(&self, provider: &Provider) -> bool {
        self.names_host_of(provider)
            && self.names_address_of(provider)
            && self.names_application_of(provider)
            && self.service.as_ref().is_none_or(|service| *service == provider.key)
            && self
                .parameters
                .iter()
                .all(|(name, value)| value == ANY || provider.url.parameters.get(name) == Some(value))
            && self.condition.as_ref().is_none_or(|condition| condition.is_met_by(provider, self.side))
    }

    fn names_host_of(&self, provider: &Provider) -> bool {
        let is_any = self.host == ANY_HOST;
        let is_its = is_any || self.host == provider.host();
        match (self.is_sided, self.side, self.port) {
            (true, Some(ServiceSide::Provider), _) => is_its,
            // The host is that of a consumer.
            (true, Some(ServiceSide::Consumer), _) | (false, _, None) => is_any,
            (true, None, _) => false,
            (false, _, Some(port)) => is_its && provider.url.port == Some(port),
        }
    }

    fn names_address_of(&self, provider: &Provider) -> bool {
        let (address, host) = (provider.address(), provider.host());
        let any_at_port = provider.url.port.map(|port| format!("{ANY_HOST}:{port}"));
        let is_its = |one: &String| {
            *one == address
                || one == host
                || one == ANY_HOST
                || one == "0.0.0.0:*"
                || Some(one) == any_at_port.as_ref()
        };
        self.addresses.is_empty() || self.addresses.iter().any(is_its)
    }

    fn names_application_of(&self, provider: &Provider) -> bool {
        match self.application.as_deref() {
            None | Some(ANY) => true,
            // The application is that of a consumer.
            Some(_) if self.side == Some(ServiceSide::Consumer) => false,
            Some(application) => provider.application() == Some(application),
        }
    }
}

/// Reads the parameters that views apply.
///
/// # Errors
/// If one has no valid value.
pub(super) fn changes(
    weight: Option<&str>,
    disabled: Option<&str>,
) -> Result<(Option<u32>, Option<bool>), String> {
    let weight = match weight {
        Some(weight) => Some(read_weight(weight).ok_or("weight must be a number of at least 0")?),
        None => None,
    };
    let disabled = match disabled {
        Some(text) if is_true(text) => Some(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Some(false),
        Some(_) => return Err("disabled must be true or false".to_owned()),
        None => None,
    };
    Ok((weight, disabled))
}

/// Returns addresses in the form of [`Provider::address`], without the brackets of IPv6 addresses.
pub(super) fn addresses<'a>(addresses: impl Iterator<Item = &'a str>) -> Vec<String> {
    let written = |address: &str| match split_authority(address) {
        Ok((Some(host), Some(port))) => format!("{host}:{port}"),
        Ok((Some(host), None)) => host,
        // Such as a port of `*`.
        _ => address.to_owned(),
    };
    addresses.map(str::trim).filter(|address| !address.is_empty()).map(written).collect()
}
