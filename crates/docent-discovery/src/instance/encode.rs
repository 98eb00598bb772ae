use super::Instance;
use docent_core::{Client, Error};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::ser::Formatter;
use serde_json::value::RawValue;
use std::io;

/// Maximum nesting depth of lists and objects. Deeper data is refused both in writing and in reading.
pub(crate) const DEEPEST: usize = 64;

/// Instance with its payload as JSON: the form that is announced, for any type of payload.
pub(crate) type EncodedInstance = Instance<Box<RawValue>>;

/// Encodes a payload as JSON of at most `most` bytes.
pub(crate) fn write_payload<P: Serialize>(payload: &P, most: usize) -> Result<Box<RawValue>, Error> {
    let mut out = Bounded { bytes: Vec::new(), most, reached: 0 };
    let depth = Depth { now: 0 };
    let written = payload.serialize(&mut serde_json::Serializer::with_formatter(&mut out, depth));
    let refused = |detail: String| Error::invalid_input("register", detail);
    written.map_err(|error| match error.io_error_kind() {
        Some(io::ErrorKind::InvalidInput) => {
            refused(format!("payload must not nest deeper than {DEEPEST} lists and objects"))
        }
        // Only the beginning of unwritten data is known, so the size is a lower bound.
        Some(_) => Error::too_large("register", out.reached, most),
        // Serde's error about a value may contain the value.
        None => refused("payload must be something that JSON can represent".to_owned()),
    })?;
    let text = String::from_utf8(out.bytes).expect("serde_json writes UTF-8");
    Ok(RawValue::from_string(text).expect("serde_json writes JSON"))
}

/// Encodes an instance with its payload as JSON, if it is not too large.
pub(crate) fn encoded<P: Serialize>(
    client: &Client,
    mut instance: Instance<P>,
) -> Result<EncodedInstance, Error> {
    let payload = instance.payload.take();
    let payload = payload.map(|payload| write_payload(&payload, client.max_request())).transpose()?;
    // A payload that is `null` in JSON counts as no payload.
    Ok(instance.with_payload(payload.filter(|payload| payload.get() != "null")))
}

impl EncodedInstance {
    /// Encodes the instance as Curator does.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("text, numbers and JSON can be written as JSON")
    }
}

/// Serializes as Curator does, with the payload in its own serialization.
impl<P: Serialize> Serialize for Instance<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("address", &self.address)?;
        map.serialize_entry("port", &self.port)?;
        map.serialize_entry("sslPort", &self.ssl_port)?;
        map.serialize_entry("payload", &self.payload)?;
        map.serialize_entry("registrationTimeUTC", &self.registered_at_ms)?;
        map.serialize_entry("serviceType", self.service_type.name())?;
        map.serialize_entry("uriSpec", &self.uri_spec)?;
        if self.writes_enabled || !self.enabled {
            map.serialize_entry("enabled", &self.enabled)?;
        }
        if let Some(weight) = self.weight {
            map.serialize_entry("weight", &weight)?;
        }
        for (key, value) in &self.unknown {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// Accepts a limited number of bytes.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
    /// Number of bytes there would have been, including rejected ones.
    reached: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.reached = self.bytes.len() + bytes.len();
        if self.reached > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Stops a value that nests too deeply before it overflows the stack.
struct Depth {
    now: usize,
}

impl Depth {
    fn enter(&mut self) -> io::Result<()> {
        self.now += 1;
        if self.now > DEEPEST { Err(io::ErrorKind::InvalidInput.into()) } else { Ok(()) }
    }
}

impl Formatter for Depth {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.now = self.now.saturating_sub(1);
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.now = self.now.saturating_sub(1);
        writer.write_all(b"}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ServiceType, UriSpec};
    use serde_json::{Value, json};

    fn written<P: Serialize>(instance: Instance<P>) -> String {
        let payload = instance.payload.as_ref().map(|payload| write_payload(payload, 10_000).unwrap());
        String::from_utf8(instance.with_payload(payload).to_json()).unwrap()
    }

    fn instance() -> Instance {
        let mut instance = Instance::new("svc", "10.0.0.1", 80).id("id1");
        instance.registered_at_ms = 1_234_567_890_123;
        instance
    }

    #[test]
    fn the_encoding_is_curators_json_byte_for_byte() {
        assert_eq!(
            written(instance().payload("pl")),
            r#"{"name":"svc","id":"id1","address":"10.0.0.1","port":80,"sslPort":null,"payload":"pl","registrationTimeUTC":1234567890123,"serviceType":"DYNAMIC","uriSpec":null}"#
        );
        let mut bare = Instance::named("svc").id("id1").service_type(ServiceType::Permanent).ssl_port(443);
        bare.registered_at_ms = 0;
        let bare = bare.uri_spec("x{port}".parse::<UriSpec>().unwrap()).always_write_enabled();
        assert_eq!(
            written(bare),
            r#"{"name":"svc","id":"id1","address":null,"port":null,"sslPort":443,"payload":null,"registrationTimeUTC":0,"serviceType":"PERMANENT","uriSpec":{"parts":[{"value":"x","variable":false},{"value":"port","variable":true}]},"enabled":true}"#
        );
        assert!(
            written(instance().enabled(false).weight(7))
                .ends_with(r#""uriSpec":null,"enabled":false,"weight":7}"#)
        );
    }

    #[test]
    fn a_payload_that_is_too_deep_or_too_large_is_refused_before_it_takes_stack_or_memory() {
        let mut bomb = json!(1);
        for _ in 0..DEEPEST {
            bomb = json!([bomb]);
        }
        write_payload(&bomb, 1000).unwrap();
        let error = write_payload(&json!({ "a": bomb }), 1000).unwrap_err().to_string();
        assert_eq!(error, "register: payload must not nest deeper than 64 lists and objects");
        let mut bomb = Value::Null;
        for _ in 0..100_000 {
            bomb = Value::Array(vec![bomb]);
        }
        assert!(write_payload(&bomb, 1_000_000).is_err());
        // Dropping it would overflow the stack.
        std::mem::forget(bomb);
        let error = write_payload(&"x".repeat(1000), 1000).unwrap_err().to_string();
        assert_eq!(error, "register: request or reply is too large: 1001 bytes, the limit is 1000");
        let keys = std::collections::BTreeMap::from([(vec!["secret"], 1)]);
        let error = write_payload(&keys, 1000).unwrap_err().to_string();
        assert_eq!(error, "register: payload must be something that JSON can represent");
    }
}
