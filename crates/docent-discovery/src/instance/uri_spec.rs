use super::Instance;
use docent_core::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A template for an instance's URI, as in Curator: `{scheme}://{address}:{port}/v1`.
///
/// Variables are `scheme` (`https` with a TLS port, otherwise `http`), `name`, `id`, `address`, `port`,
/// `ssl-port`, `registration-time-utc` (milliseconds), `service-type` (lower case), `[` and `]` for braces,
/// and any that the caller passes to [`build`](Self::build). If the instance has no
/// value for one of the named variables, such as `port`, that variable is empty.
///
/// ```
/// use docent_discovery::{Instance, UriSpec};
///
/// let spec: UriSpec = "{scheme}://{address}:{port}/{shop}".parse()?;
/// let instance = Instance::new("orders", "10.0.0.7", 8080);
/// assert_eq!(spec.build(&instance, &[("shop", "eu")])?, "http://10.0.0.7:8080/eu");
/// # Ok::<(), docent_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UriSpec {
    /// Parts in order.
    #[serde(default)]
    pub parts: Vec<UriPart>,
}

/// A part of a [`UriSpec`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UriPart {
    /// Text, or the name of a variable.
    #[serde(default)]
    pub value: String,
    /// True for a variable.
    #[serde(default)]
    pub variable: bool,
}

impl UriSpec {
    /// Returns the URI of `instance`. `variables` override the instance's own.
    ///
    /// # Errors
    /// `InvalidInput` if a variable is neither one of the instance's own nor among `variables`.
    pub fn build<P>(&self, instance: &Instance<P>, variables: &[(&str, &str)]) -> Result<String, Error> {
        let mut uri = String::new();
        for UriPart { value, variable } in &self.parts {
            if !variable {
                uri.push_str(value);
            } else if let Some((_, given)) = variables.iter().find(|(name, _)| name == value) {
                uri.push_str(given);
            } else {
                uri.push_str(&known(value, instance).ok_or_else(|| no_value(value))?);
            }
        }
        Ok(uri)
    }
}

fn no_value(variable: &str) -> Error {
    Error::invalid_input("uri", format!("variable {variable:?} of the uri spec must have a value"))
}

fn known<P>(variable: &str, instance: &Instance<P>) -> Option<String> {
    let port = |port: Option<u16>| port.map_or_else(String::new, |port| port.to_string());
    Some(match variable {
        "scheme" => instance.scheme().to_owned(),
        "name" => instance.name.clone(),
        "id" => instance.id.clone(),
        "address" => instance.address.clone().unwrap_or_default(),
        "port" => port(instance.port),
        "ssl-port" => port(instance.ssl_port),
        "registration-time-utc" => instance.registered_at_ms.to_string(),
        "service-type" => instance.service_type.name().to_lowercase(),
        "[" => "{".to_owned(),
        "]" => "}".to_owned(),
        _ => return None,
    })
}

impl FromStr for UriSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut add = |value: &str, variable| {
            if variable || !value.is_empty() {
                parts.push(UriPart { value: value.to_owned(), variable });
            }
        };
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            add(before, false);
            let Some((variable, after)) = after.split_once('}') else {
                let detail = format!("uri spec {text:?} must close each brace");
                return Err(Error::invalid_input("uri", detail));
            };
            add(variable.trim(), true);
            rest = after;
        }
        add(rest, false);
        Ok(Self { parts })
    }
}

impl fmt::Display for UriSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|UriPart { value, variable }| match variable {
            true => write!(f, "{{{value}}}"),
            false => f.write_str(value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str =
        "{scheme}://{address}:{port}:{ssl-port}/{name}/{id}?{registration-time-utc}&{service-type}";

    #[test]
    fn every_variable_has_curators_value() {
        let mut instance = Instance::new("svc", "10.0.0.1", 80).id("id1");
        instance.registered_at_ms = 1_234_567_890_123;
        let spec: UriSpec = ALL.parse().unwrap();
        let plain = spec.build(&instance, &[]).unwrap();
        assert_eq!(plain, "http://10.0.0.1:80:/svc/id1?1234567890123&dynamic");
        let tls = spec.build(&instance.ssl_port(443), &[("name", "mine")]).unwrap();
        assert_eq!(tls, "https://10.0.0.1:80:443/mine/id1?1234567890123&dynamic");
        let braces: UriSpec = "a{[}b{]}".parse().unwrap();
        assert_eq!(braces.build(&Instance::named("svc"), &[]).unwrap(), "a{b}");
    }

    #[test]
    fn a_uri_spec_reads_and_writes_text_and_curators_json() {
        let spec: UriSpec = "{scheme}://x{ port }".parse().unwrap();
        assert_eq!(spec.to_string(), "{scheme}://x{port}");
        let json = r#"{"parts":[{"value":"scheme","variable":true},{"value":"://x","variable":false},{"value":"port","variable":true}]}"#;
        assert_eq!(serde_json::to_string(&spec).unwrap(), json);
        assert_eq!(serde_json::from_str::<UriSpec>(json).unwrap(), spec);
    }

    #[test]
    fn an_invalid_spec_is_reported_with_its_rule() {
        let open = "a{b".parse::<UriSpec>().unwrap_err().to_string();
        assert_eq!(open, "uri: uri spec \"a{b\" must close each brace");
        let spec: UriSpec = "{shard}".parse().unwrap();
        let missing = spec.build(&Instance::named("svc"), &[]).unwrap_err().to_string();
        assert_eq!(missing, "uri: variable \"shard\" of the uri spec must have a value");
    }
}
