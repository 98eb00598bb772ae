use crate::exit::Failure;

/// Returns the failure for a `key` that has no value.
pub(super) fn missing(key: &str) -> Failure {
    Failure::other(format!("nothing is published at {key}"))
}

/// Refuses a `value` that `must_be_json` and is not.
pub(super) fn check_json(value: &[u8], must_be_json: bool) -> Result<(), Failure> {
    if !must_be_json {
        return Ok(());
    }
    let read = serde_json::from_slice::<serde::de::IgnoredAny>(value);
    read.map(drop).map_err(|error| Failure::bad_data(format!("the value is not JSON: {error}")))
}
