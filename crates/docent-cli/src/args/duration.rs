use std::time::Duration;

/// Parses the duration of an argument, such as `30s`, `1500ms` or `2m`. A plain number is in seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let rule = "must be a number of seconds, or a number with ms, s, m or h, such as 1500ms or 30s";
    docent::time::parse_duration(text).ok_or_else(|| rule.to_owned())
}
