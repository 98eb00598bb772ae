use super::check;
use super::{ServiceType, UriSpec};
use docent_core::Error;
use serde_json::value::RawValue;
use std::fmt;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// One running copy of a service: its address, and a payload about it.
///
/// An instance is written as the JSON of Curator's `ServiceInstance`, byte for byte. `weight`, which Curator
/// does not know and ignores, is appended if it is set, and `enabled` if it is false. Unknown keys of an
/// instance that was read are written back. `Serialize` uses the same form, including the payload.
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
/// For Java readers a payload should be an object or a string: Jackson reads an object without `@class` as a
/// map, and rejects a bare list. `#[serde(tag = "@class", rename = "com.shop.Meta")]` on a payload's struct
/// sets a class name.
#[derive(Clone)]
#[non_exhaustive]
pub struct Instance<P = ()> {
    /// Name of the service: one segment of a path, without spaces, at most 1,024 bytes.
    pub name: String,
    /// Id that distinguishes the instances of a service, by the same rules as the name. A UUID by default. A
    /// restarted process with the same id replaces its predecessor.
    pub id: String,
    /// Host name or IP address at which callers reach the instance, by the same rules as the name and without
    /// a port. The unspecified addresses `0.0.0.0` and `::` are refused. A loopback address such as
    /// `localhost` is accepted, and logged as a warning unless the client's servers are at one, too.
    pub address: Option<String>,
    /// Port, from 1 to 65,535.
    pub port: Option<u16>,
    /// TLS port, from 1 to 65,535.
    pub ssl_port: Option<u16>,
    /// Any further data about the instance.
    pub payload: Option<P>,
    /// Creation time, in milliseconds since 1970, by the clock of the creator.
    pub registered_at_ms: i64,
    /// Kind of node, which decides how long the instance stays announced.
    pub service_type: ServiceType,
    /// Template of its URI.
    pub uri_spec: Option<UriSpec>,
    /// False for an instance that exists but must not be given work.
    pub enabled: bool,
    /// Share relative to other instances, for [`PickPolicy::Weighted`](crate::PickPolicy::Weighted). No
    /// weight counts as 1, and as 100 in Dubbo's layout. An instance with 0 gets no work while others exist.
    /// Weights in nodes written by other programs are rounded to the nearest whole number, but to at least 1
    /// unless they are 0, and limited to the maximum. A negative number, or anything that is not a number,
    /// counts as no weight.
    pub weight: Option<u32>,
    /// True if `enabled` is written even if it is true.
    pub(crate) writes_enabled: bool,
    /// Unknown keys of the JSON that the instance was read from.
    pub(crate) unknown: Vec<(String, Box<RawValue>)>,
}

impl Instance {
    /// Creates an instance with a random id and no payload, enabled and dynamic. Its fields are checked when
    /// it is registered.
    pub fn new(name: impl Into<String>, address: impl Into<String>, port: u16) -> Self {
        Self { address: Some(address.into()), port: Some(port), ..Self::named(name) }
    }

    /// Like [`new`](Self::new), without address and port.
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

    /// Sets [`payload`](Self::payload), which may have another type.
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

    /// Writes `enabled` even if it is true, as Curator does with `compatibleSerializationMode(false)`.
    #[must_use]
    pub fn always_write_enabled(mut self) -> Self {
        self.writes_enabled = true;
        self
    }

    /// Returns `https` if there is a TLS port, otherwise `http`.
    pub fn scheme(&self) -> &'static str {
        if self.ssl_port.is_some() { "https" } else { "http" }
    }

    /// Returns `address:port` for the [scheme](Self::scheme): with the TLS port if there is one, otherwise
    /// with the other port. Returns `None` without an address or a port.
    pub fn authority(&self) -> Option<String> {
        let (address, port) = (self.address.as_deref()?, self.ssl_port.or(self.port)?);
        Some(format!("{}:{port}", check::bracketed(address)))
    }

    /// Returns the URI by the [`uri_spec`](Self::uri_spec). Without a spec, it is the [scheme](Self::scheme)
    /// and the [authority](Self::authority): `scheme://address:port`.
    ///
    /// # Errors
    /// `InvalidInput` if the spec has an unknown variable, or if there is neither a spec nor an address
    /// with a port.
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

    /// Returns the same instance with another payload.
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

    /// Checks that the instance can be registered.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check::segment("service name", &self.name)?;
        check::segment("id", &self.id)?;
        self.address.as_deref().map_or(Ok(()), check::address)?;
        if [self.port, self.ssl_port].contains(&Some(0)) {
            return Err(Error::invalid_input("register", "port 0 must be from 1 to 65535"));
        }
        if self.service_type == ServiceType::DynamicSequential {
            let detail = "an instance of type DYNAMIC_SEQUENTIAL must not be registered: the name of its node cannot be kept";
            return Err(Error::invalid_input("register", detail));
        }
        Ok(())
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

// `Debug` prints neither the payload nor unknown keys of the JSON.
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
