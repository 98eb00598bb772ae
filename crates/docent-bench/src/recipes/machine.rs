//! Text that describes when and where figures were measured.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns today's date in UTC, as `2026-11-23`.
pub(super) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// Returns the date of a day, counted from 1970-01-01.
fn date(mut days: u64) -> String {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut month) = (1970, 1);
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

/// Returns a description of the processor, cores, memory and kernel.
pub(super) fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (processors, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let model = field(&processors, "model name").unwrap_or("an unknown processor");
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kilobytes: f64 = field(&memory, "MemTotal")
        .and_then(|total| total.trim_end_matches(" kB").parse().ok())
        .unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{cores} cores of {model}, {:.0} GB, Linux {}", kilobytes / 1024.0 / 1024.0, kernel.trim())
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) =
        text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name)?;
    Some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(20_780), "2026-11-23");
    }

    #[test]
    fn fields_are_found_by_their_names() {
        assert_eq!(field("model\t: 1\nmodel name\t: AMD EPYC\n", "model name"), Some("AMD EPYC"));
    }
}
