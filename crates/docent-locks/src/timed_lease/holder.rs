//! Node that records the holder of a lease, in the format of kazoo's `NonBlockingLease`.

use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// Version of the format.
const VERSION: u64 = 1;
const DAY: u64 = 24 * 60 * 60;

/// Content of a lease's node.
#[derive(Debug, PartialEq, Eq)]
pub struct Holder {
    /// Identity that the holder chose.
    pub identity: String,
    /// End of the lease, in whole seconds.
    pub end: SystemTime,
}

impl Holder {
    pub(super) fn encode(&self) -> Vec<u8> {
        let end = format_utc(self.end);
        json!({ "version": VERSION, "holder": self.identity, "end": end }).to_string().into_bytes()
    }

    /// Parses the data of a lease's node. Returns `None` for data of another version or another program: the
    /// holder is unknown then.
    pub fn decode(data: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(data).ok()?;
        (value.get("version")?.as_u64()? == VERSION).then_some(())?;
        let identity = value.get("holder")?.as_str()?.to_owned();
        Some(Self { identity, end: parse_utc(value.get("end")?.as_str()?)? })
    }
}

/// Formats a time like `2026-11-21T04:52:16`, in UTC. Times before 1970 become the beginning of 1970.
fn format_utc(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date(seconds / DAY);
    let of_day = seconds % DAY;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

fn parse_utc(text: &str) -> Option<SystemTime> {
    let (date, time) = text.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let numbers: Vec<u64> = text.split(separator).map(|number| number.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// Returns the days from 1970-01-01 to a date. Source: Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms".
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March, so that the leap day is the last day of a year.
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns the date that is `days` after 1970-01-01. Source: as for [`days`].
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn times_are_written_and_read_as_kazoo_does() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_795_236_736, "2026-11-21T04:52:16"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(format_utc(at(seconds)), text);
            assert_eq!(parse_utc(text), Some(at(seconds)), "{text}");
        }
        for days in 0..200_000 {
            assert_eq!(parse_utc(&format_utc(at(days * DAY))), Some(at(days * DAY)));
        }
        for bad in ["", "2026-11-21", "2026-13-01T00:00:00", "1969-12-31T23:59:59", "2026-11-21T24:00:00"] {
            assert_eq!(parse_utc(bad), None, "{bad}");
        }
    }

    #[test]
    fn kazoos_holder_is_read_and_other_data_is_not() {
        let data = br#"{"version": 1, "holder": "me", "end": "2026-11-21T04:52:16"}"#;
        let holder = Holder { identity: "me".to_owned(), end: at(1_795_236_736) };
        assert_eq!(Holder::decode(data), Some(holder));
        for bad in [&br#"{"version": 2, "holder": "me", "end": "2026-11-21T04:52:16"}"#[..], b"", b"[]"] {
            assert_eq!(Holder::decode(bad), None);
        }
        let holder = Holder { identity: "\"quoted\" ü".to_owned(), end: at(1) };
        assert_eq!(Holder::decode(&holder.encode()), Some(holder));
    }
}
