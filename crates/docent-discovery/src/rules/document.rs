use super::rule::{ANY, ANY_HOST, addresses, changes};
use super::{Condition, Origin, Rule, ServiceKey};
use crate::layout::{ServiceSide, Url, is_true, split_authority};
use serde::Deserialize;
use serde_norway::Value;
use std::collections::BTreeMap;

/// Maximum size of a document in bytes: the time that the parser takes grows with the square of the nesting.
const MAX_SIZE: usize = 64 * 1024;

/// Rules of one service or application, as Dubbo 2.7 and later write them in YAML.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    config_version: Option<Value>,
    scope: Option<String>,
    key: Option<Value>,
    enabled: Option<Value>,
    configs: Vec<Item>,
}

/// One entry of a document.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    side: Option<String>,
    addresses: Option<Vec<Value>>,
    provider_addresses: Option<Vec<Value>>,
    services: Option<Vec<Value>>,
    applications: Option<Vec<Value>>,
    enabled: Option<Value>,
    r#type: Option<String>,
    r#match: Option<Condition>,
    parameters: Option<BTreeMap<String, Value>>,
}

/// Parses the data of a rule node: a document in YAML, or a list of URLs in JSON. Empty data has no rules.
///
/// # Errors
/// What is wrong with the data. One invalid entry makes all of it invalid, as in Dubbo.
pub(super) fn parse(data: &[u8]) -> Result<Vec<Rule>, String> {
    if data.len() > MAX_SIZE {
        return Err(format!("the data has {} bytes, and must have at most {MAX_SIZE}", data.len()));
    }
    let text = std::str::from_utf8(data).map_err(|_| "the data is not UTF-8")?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    if let Ok(urls) = serde_json::from_str::<Vec<String>>(text) {
        return of_urls(&urls);
    }
    let document: Document = serde_norway::from_str(text).map_err(|error| match error.location() {
        Some(place) => format!("invalid YAML in line {}, column {}", place.line(), place.column()),
        None => "invalid YAML".to_owned(),
    })?;
    let mut rules = Vec::new();
    for (number, item) in document.configs.iter().enumerate() {
        rules.extend(document.rules(item).map_err(|reason| format!("entry {}: {reason}", number + 1))?);
    }
    Ok(rules)
}

fn of_urls(urls: &[String]) -> Result<Vec<Rule>, String> {
    let mut rules = Vec::new();
    for url in urls {
        let url = Url::parse(url)?;
        if url.scheme == "empty" {
            return Ok(Vec::new());
        }
        rules.extend(Rule::of_url(&url, Origin::Service)?);
    }
    Ok(rules)
}

impl Document {
    /// Returns the rules of one entry, one for each combination of address, service and application.
    fn rules(&self, item: &Item) -> Result<Vec<Rule>, String> {
        let parameters = item.parameters.as_ref().filter(|parameters| !parameters.is_empty());
        let parameters = parameters.ok_or("parameters must not be empty")?;
        let key = self.key.as_ref().and_then(text).filter(|key| !key.is_empty()).ok_or("key is missing")?;
        let value = |name: &str| parameters.get(name).and_then(text);
        let (weight, disabled) = changes(value("weight").as_deref(), value("disabled").as_deref())?;
        if let Some(condition) = &item.r#match {
            condition.check()?;
        }
        let side = match item.side.as_deref() {
            Some("provider") => ServiceSide::Provider,
            Some("consumer") => ServiceSide::Consumer,
            // Dubbo applies no rule without a side.
            _ => return Ok(Vec::new()),
        };
        if !self.is_on(item) {
            return Ok(Vec::new());
        }
        let is_v3 = self.config_version.as_ref().and_then(text).is_some_and(|v| v.starts_with("v3.0"));
        let hosts = or_one(texts(item.addresses.as_ref()), ANY_HOST);
        let addresses = match texts(item.provider_addresses.as_ref()) {
            list if !list.is_empty() => addresses(list.iter().map(String::as_str)),
            _ if side == ServiceSide::Provider => addresses(hosts.iter().map(String::as_str)),
            _ => Vec::new(),
        };
        let conditions = parameters.iter().filter(|_| !is_v3);
        let conditions = conditions.filter_map(|(name, value)| Some((name.strip_prefix('~')?, text(value)?)));
        let rule = Rule {
            origin: Origin::Service,
            is_absent: false,
            is_sided: true,
            host: String::new(),
            port: None,
            priority: value("priority").and_then(|priority| priority.parse().ok()).unwrap_or(0),
            side: Some(side),
            application: None,
            service: None,
            addresses,
            parameters: conditions.map(|(name, value)| (name.to_owned(), value)).collect(),
            condition: item.r#match.clone().filter(|_| is_v3),
            weight,
            disabled,
        };
        let mut rules = Vec::new();
        for host in hosts {
            let host = host_of(&host)?;
            let rule = Rule { host, ..rule.clone() };
            match self.scope.as_deref() {
                Some("application") => {
                    for service in or_one(texts(item.services.as_ref()), ANY) {
                        let service = (service != ANY).then(|| ServiceKey::parse(&service));
                        let application = Some(key.clone());
                        rules.push(Rule {
                            origin: Origin::Application,
                            application,
                            service,
                            ..rule.clone()
                        });
                    }
                }
                _ => {
                    let service = Some(ServiceKey::parse(&key));
                    for application in or_one(texts(item.applications.as_ref()), ANY) {
                        let (application, service) = (Some(application), service.clone());
                        rules.push(Rule { application, service, ..rule.clone() });
                    }
                }
            }
        }
        Ok(rules)
    }

    /// Returns true if an entry is turned on: by the document, or by its own flag if it has a type.
    fn is_on(&self, item: &Item) -> bool {
        let is_on = |flag: &Value| text(flag).is_some_and(|flag| is_true(&flag));
        match item.r#type.as_deref() {
            None | Some("general") => self.enabled.as_ref().is_none_or(is_on),
            Some(_) => item.enabled.as_ref().is_some_and(is_on),
        }
    }
}

/// Returns the host of an address, whose port may be `*`.
fn host_of(address: &str) -> Result<String, String> {
    let address = address.strip_suffix(":*").unwrap_or(address);
    let (host, _) = split_authority(address)?;
    host.ok_or_else(|| "an address must have a host".to_owned())
}

/// Returns a scalar as text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(bool) => Some(bool.to_string()),
        _ => None,
    }
}

fn texts(values: Option<&Vec<Value>>) -> Vec<String> {
    values.into_iter().flatten().filter_map(text).collect()
}

fn or_one(texts: Vec<String>, default: &str) -> Vec<String> {
    if texts.is_empty() { vec![default.to_owned()] } else { texts }
}
