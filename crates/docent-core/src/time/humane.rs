//! Durations in settings, in a notation for people.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::{Duration, SystemTime};

/// Rule for durations in settings, as quoted in errors.
pub(crate) const DURATION_RULE: &str =
    "must be a number of seconds, or a number with ms, s, m or h, as in \"1500ms\" or \"30s\"";

/// Parses a duration such as `30s`, `1500ms`, `1.5m` or `2h`; a number without a unit is in seconds. This is
/// the notation of durations in [`Options`](crate::Options). Returns `None` for any other text.
///
/// ```
/// use docent_core::parse_duration;
/// use std::time::Duration;
///
/// assert_eq!(parse_duration("1500ms"), Some(Duration::from_millis(1_500)));
/// assert_eq!(parse_duration("soon"), None);
/// ```
pub fn parse_duration(text: &str) -> Option<Duration> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[number.len()..] {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return None,
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = if is_plain { number.parse().ok()? } else { return None };
    Duration::try_from_secs_f64(number * seconds).ok()
}

/// Duration in settings, whose errors name the value and the rule.
pub(crate) struct HumaneDuration(pub(crate) Duration);

impl<'de> Deserialize<'de> for HumaneDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Humane)
    }
}

struct Humane;

impl Visitor<'_> for Humane {
    type Value = HumaneDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of seconds, or a text as \"1500ms\" or \"30s\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<HumaneDuration, E> {
        let parsed = parse_duration(text).map(HumaneDuration);
        parsed.ok_or_else(|| E::custom(format_args!("duration {text:?} {DURATION_RULE}")))
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<HumaneDuration, E> {
        Ok(HumaneDuration(Duration::from_secs(seconds)))
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<HumaneDuration, E> {
        match u64::try_from(seconds) {
            Ok(seconds) => self.visit_u64(seconds),
            Err(_) => Err(E::custom(format_args!("duration {seconds} {DURATION_RULE}"))),
        }
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<HumaneDuration, E> {
        let parsed = Duration::try_from_secs_f64(seconds).map(HumaneDuration);
        parsed.map_err(|_| E::custom(format_args!("duration {seconds} {DURATION_RULE}")))
    }
}

/// Returns a duration in seconds for a field of a log event, rounded to milliseconds.
pub(crate) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

// Serialization of times as numbers of milliseconds, in fields whose names end with `_ms`.

/// Serializes a time as milliseconds since 1970; 0 for earlier times.
pub(crate) fn time_ms<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    since_1970_ms(*time).serialize(serializer)
}

/// Serializes a duration as milliseconds, if there is one.
pub(crate) fn duration_ms<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    duration.map(ms).serialize(serializer)
}

/// Returns milliseconds since 1970; 0 for earlier times.
pub fn since_1970_ms(time: SystemTime) -> u64 {
    ms(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, ms) in [
            ("30s", 30_000),
            ("1500ms", 1_500),
            ("1ms", 1),
            ("2m", 120_000),
            ("1.5m", 90_000),
            ("1h", 3_600_000),
            ("30", 30_000),
            ("0.25", 250),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for bad in ["", "s", "-1s", "1 s", "30x", "1e3s", "NaN", "inf", "1m30s", "1..5s", "1d", "٣s"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_are_seconds_and_what_is_refused_is_named_with_the_rule() {
        let read = |json: &str| serde_json::from_str::<HumaneDuration>(json).map(|humane| humane.0);
        assert_eq!(read("30").unwrap(), Duration::from_secs(30));
        assert_eq!(read("1.5").unwrap(), Duration::from_millis(1_500));
        assert_eq!(read("\"250ms\"").unwrap(), Duration::from_millis(250));
        for (bad, value) in [("\"30x\"", "\"30x\""), ("-1", "-1"), ("-0.5", "-0.5")] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains(&format!("duration {value} {DURATION_RULE}")), "{error}");
        }
    }
}
