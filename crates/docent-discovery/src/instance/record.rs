use super::check;
use super::{ServiceType, UriSpec};
use docent_core::Error;
use serde_json::value::RawValue;
use std::fmt;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// One running copy of a service: its address, and a payload about it.
///
/// It is written as the JSON of Curator's `ServiceInstance`, byte for byte; `weight`, which Curator does not
/// know and ignores, comes after that when it is set, and `enabled` when it is false. Unknown keys of an
/// instance that was read are written again with it. It is serialized in that form, too, with its payload.
///
/// ```
/// use docent_discovery::Instance;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Meta { zone: String }
///
/// let instance = Instance::new("orders", "10.0.0.7", 8080).payload(Meta { zone: "a".into() }).weight(3);
/// assert_eq!(instance.authority().as_deref(), Some("10.0.0.7:8080"));
/// ```
///
/// For readers in Java a payload should be an object or a text: Jackson reads an object without `@class` as a
/// map, and refuses a bare list. `#[serde(tag = "@class", rename = "com.shop.Meta")]` on a payload's struct
/// names a class.
#[derive(Clone)]
#[non_exhaustive]
pub struct Instance<P = ()> {
    /// The service: one segment of a path, without spaces, at most 1,024 bytes.
    pub name: String,
    /// Tells instances of the service apart, by the same rules; a UUID unless it was set. A process that is
    /// started again with the id it had before takes its own place.
    pub id: String,
    /// Host name or IP address.
    pub address: Option<String>,
    /// The port, from 1 to 65,535.
    pub port: Option<u16>,
    /// The port for TLS, from 1 to 65,535.
    pub ssl_port: Option<u16>,
    /// Any further data about the instance.
    pub payload: Option<P>,
    /// When it was made, in milliseconds since 1970, by its maker's clock.
    pub registered_at_ms: i64,
    /// Its kind of node, which decides how long it stays announced.
    pub service_type: ServiceType,
    /// Template of its URI.
    pub uri_spec: Option<UriSpec>,
    /// False for an instance that is there but must be given no work.
    pub enabled: bool,
    /// Its share among others, for [`PickPolicy::Weighted`](crate::PickPolicy::Weighted); one without
    /// counts as 1, and 0 gets nothing while others are there. Numbers that others wrote are rounded to
    /// the nearest whole one, to 1 at least unless they are 0, and to the largest at most; a negative
    /// number, or something that is no number, is none.
    pub weight: Option<u32>,
    /// True when `enabled` is written also when it is true.
    pub(crate) writes_enabled: bool,
    /// Unknown keys of the JSON that it was read from.
    pub(crate) unknown: Vec<(String, Box<RawValue>)>,
}

impl Instance {
    /// An instance with a random id, without payload, enabled, dynamic. Its parts are checked when it is
    /// registered.
    pub fn new(name: impl Into<String>, address: impl Into<String>, port: u16) -> Self {
        Self { address: Some(address.into()), port: Some(port), ..Self::named(name) }
    }

    /// As [`new`](Self::new), without address and port.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            id: Uuid::new_v4().to_string(),
            address: None,
            port: None,
            ssl_port: None,
            payload: None,
            registered_at_ms: now_ms(),
            service_type: ServiceType::Dynamic,
            uri_spec: None,
            enabled: true,
            weight: None,
            writes_enabled: false,
            unknown: Vec::new(),
        }
    }
}

impl<P> Instance<P> {
    /// Sets [`id`](Self::id).
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets [`ssl_port`](Self::ssl_port).
    #[must_use]
    pub fn ssl_port(mut self, port: u16) -> Self {
        self.ssl_port = Some(port);
        self
    }

    /// Sets [`payload`](Self::payload), also one of another type.
    #[must_use]
    pub fn payload<Q>(self, payload: Q) -> Instance<Q> {
        self.with_payload(Some(payload))
    }

    /// Sets [`service_type`](Self::service_type).
    #[must_use]
    pub fn service_type(mut self, service_type: ServiceType) -> Self {
        self.service_type = service_type;
        self
    }

    /// Sets [`uri_spec`](Self::uri_spec).
    #[must_use]
    pub fn uri_spec(mut self, spec: UriSpec) -> Self {
        self.uri_spec = Some(spec);
        self
    }

    /// Sets [`enabled`](Self::enabled).
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets [`weight`](Self::weight).
    #[must_use]
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = Some(weight);
        self
    }

    /// Writes `enabled` also when it is true, as Curator does with `compatibleSerializationMode(false)`.
    #[must_use]
    pub fn always_write_enabled(mut self) -> Self {
        self.writes_enabled = true;
        self
    }

    /// `https` when it has a TLS port, else `http`.
    pub fn scheme(&self) -> &'static str {
        if self.ssl_port.is_some() { "https" } else { "http" }
    }

    /// `address:port` of its [scheme](Self::scheme): the port for TLS when it has one, else the other; `None`
    /// without an address or a port.
    pub fn authority(&self) -> Option<String> {
        self.authority_with(self.ssl_port.or(self.port))
    }

    /// `address:port` with this port.
    pub(crate) fn authority_with(&self, port: Option<u16>) -> Option<String> {
        let (address, port) = (self.address.as_deref()?, port?);
        let is_bare_v6 = address.contains(':') && !address.starts_with('[');
        Some(if is_bare_v6 { format!("[{address}]:{port}") } else { format!("{address}:{port}") })
    }

    /// Its URI by its [`uri_spec`](Self::uri_spec); without one its [scheme](Self::scheme) and
    /// [authority](Self::authority): `scheme://address:port`.
    ///
    /// # Errors
    /// `InvalidInput` when the spec has a variable without a value, or when there is neither a spec nor an
    /// address with a port.
    pub fn uri(&self) -> Result<String, Error> {
        if let Some(spec) = &self.uri_spec {
            return spec.build(self, &[]);
        }
        let authority = self.authority().ok_or_else(|| {
            let detail = format!("instance {:?} must have an address and a port, or a uri spec", self.id);
            Error::invalid_input("uri", detail)
        })?;
        Ok(format!("{}://{authority}", self.scheme()))
    }

    /// The same with another payload.
    pub(crate) fn with_payload<Q>(self, payload: Option<Q>) -> Instance<Q> {
        Instance {
            name: self.name,
            id: self.id,
            address: self.address,
            port: self.port,
            ssl_port: self.ssl_port,
            payload,
            registered_at_ms: self.registered_at_ms,
            service_type: self.service_type,
            uri_spec: self.uri_spec,
            enabled: self.enabled,
            weight: self.weight,
            writes_enabled: self.writes_enabled,
            unknown: self.unknown,
        }
    }

    /// Checks that it can be registered.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check::segment("service name", &self.name)?;
        check::segment("id", &self.id)?;
        self.address.as_deref().map_or(Ok(()), check::address)?;
        if [self.port, self.ssl_port].contains(&Some(0)) {
            return Err(Error::invalid_input("register", "port 0 must be from 1 to 65535"));
        }
        if self.service_type == ServiceType::DynamicSequential {
            let detail = "an instance of type DYNAMIC_SEQUENTIAL must not be registered: its node's name cannot be kept";
            return Err(Error::invalid_input("register", detail));
        }
        Ok(())
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

// Neither payload nor what else stood in the JSON is printed.
impl<P> fmt::Debug for Instance<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("name", &self.name)
            .field("id", &self.id)
            .field("address", &self.address)
            .field("port", &self.port)
            .field("ssl_port", &self.ssl_port)
            .field("service_type", &self.service_type)
            .field("enabled", &self.enabled)
            .field("weight", &self.weight)
            .finish_non_exhaustive()
    }
}

impl<P: PartialEq> PartialEq for Instance<P> {
    fn eq(&self, other: &Self) -> bool {
        let unknown = |one: &Self| -> Vec<_> {
            one.unknown.iter().map(|(key, value)| (key.clone(), value.get().to_owned())).collect()
        };
        self.name == other.name
            && self.id == other.id
            && self.address == other.address
            && self.port == other.port
            && self.ssl_port == other.ssl_port
            && self.payload == other.payload
            && self.registered_at_ms == other.registered_at_ms
            && self.service_type == other.service_type
            && self.uri_spec == other.uri_spec
            && self.enabled == other.enabled
            && self.weight == other.weight
            && unknown(self) == unknown(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_has_the_port_of_the_scheme() {
        let (plain, tls) = (Instance::new("svc", "h", 80), Instance::new("svc", "h", 80).ssl_port(443));
        let only_tls = Instance { port: None, ..tls.clone() };
        for (instance, scheme, authority) in
            [(plain, "http", "h:80"), (tls, "https", "h:443"), (only_tls, "https", "h:443")]
        {
            assert_eq!((instance.scheme(), instance.authority().as_deref()), (scheme, Some(authority)));
            assert_eq!(instance.uri().unwrap(), format!("{scheme}://{authority}"));
        }
        let v6 = Instance::new("svc", "::1", 80).ssl_port(443);
        assert_eq!(v6.authority().as_deref(), Some("[::1]:443"));
        let nowhere = Instance::named("svc").id("x");
        assert_eq!(nowhere.authority(), None);
        let error = nowhere.uri().unwrap_err().to_string();
        assert_eq!(error, "uri: instance \"x\" must have an address and a port, or a uri spec");
    }
}
