use crate::exit::Failure;

/// Nothing is published at `key`.
pub(super) fn missing(key: &str) -> Failure {
    Failure::other(format!("nothing is published at {key}"))
}

/// Refuses `value` where it `must_be_json` and is not.
pub(super) fn check_json(value: &[u8], must_be_json: bool) -> Result<(), Failure> {
    if !must_be_json {
        return Ok(());
    }
    let read = serde_json::from_slice::<serde::de::IgnoredAny>(value);
    read.map(drop).map_err(|error| Failure::bad_data(format!("the value is not JSON: {error}")))
}
