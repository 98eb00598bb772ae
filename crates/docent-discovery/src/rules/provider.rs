use super::ServiceKey;
use crate::instance::read_weight;
use crate::layout::{Url, decode, is_true};

/// Instance of a service as rules see it: the URL in the name of its node.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) url: Url,
    pub(super) key: ServiceKey,
}

impl Provider {
    /// Reads the provider from the name of its node. Returns `None` if the name is not a URL.
    pub(super) fn of(service: &str, node: &str) -> Option<Self> {
        let url = Url::parse(&decode(node)?).ok()?;
        let text = |name: &str| url.parameter(name).unwrap_or_default().to_owned();
        let (group, version) = (text("group"), text("version"));
        Some(Self { key: ServiceKey { interface: service.to_owned(), group, version }, url })
    }

    pub(super) fn host(&self) -> &str {
        self.url.host.as_deref().unwrap_or_default()
    }

    /// Returns `host:port`, or the host alone without a port.
    pub(super) fn address(&self) -> String {
        let host = self.host();
        self.url.port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    pub(super) fn application(&self) -> Option<&str> {
        self.url.parameter("application")
    }

    pub(super) fn weight(&self) -> Option<u32> {
        self.url.parameter("weight").and_then(read_weight)
    }

    pub(super) fn disabled(&self) -> Option<bool> {
        self.url.parameter("disabled").map(is_true)
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.url.parameter("enabled") != Some("false")
    }
}
