use super::arguments::Arguments;
use crate::exit::Failure;
use docent::discovery::Instance;
use serde_json::{Map, Value};
use std::fs;

/// Returns the instance that the arguments describe. An instance with a health check starts disabled.
///
/// # Errors
/// `Usage` for a file that cannot be read, `BadData` for a payload that is not JSON.
pub(super) fn instance(arguments: &Arguments) -> Result<Instance<Value>, Failure> {
    let mut instance = Instance::new(&arguments.service, &arguments.address, arguments.port);
    instance.ssl_port = arguments.ssl_port;
    instance.weight = arguments.weight;
    instance.enabled = arguments.check.is_none();
    if let Some(id) = &arguments.id {
        instance.id.clone_from(id);
    }
    let payload = payload(arguments)?;
    let has_payload = !payload.is_null();
    let mut instance = instance.payload(payload);
    if !has_payload {
        instance.payload = None;
    }
    Ok(instance)
}

fn payload(arguments: &Arguments) -> Result<Value, Failure> {
    let Some(given) = &arguments.payload else {
        let members = arguments.meta.iter().map(|(name, value)| (name.clone(), Value::from(value.clone())));
        let members: Map<_, _> = members.collect();
        return Ok(if members.is_empty() { Value::Null } else { Value::Object(members) });
    };
    let text = match given.strip_prefix('@') {
        Some(file) => fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("cannot read {file}: {error}")))?,
        None => given.clone(),
    };
    serde_json::from_str(&text)
        .map_err(|error| Failure::bad_data(format!("the payload is not JSON: {error}")))
}
