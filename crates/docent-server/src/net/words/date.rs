use std::fmt;

/// A time in milliseconds since 1970, printed as Java prints a date: `Mon Nov 23 08:18:51 UTC 2026`.
pub(super) struct Date(pub(super) i64);

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [(&str, i64); 12] = [
    ("Jan", 31),
    ("Feb", 28),
    ("Mar", 31),
    ("Apr", 30),
    ("May", 31),
    ("Jun", 30),
    ("Jul", 31),
    ("Aug", 31),
    ("Sep", 30),
    ("Oct", 31),
    ("Nov", 30),
    ("Dec", 31),
];

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1_000);
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let weekday = usize::try_from(days.rem_euclid(7)).ok().and_then(|day| WEEKDAYS.get(day));
        let (year, month, day) = calendar(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        let weekday = weekday.copied().unwrap_or_default();
        write!(f, "{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year}")
    }
}

/// Returns the year, the month, and the day of the month of a day since 1970.
fn calendar(days: i64) -> (i64, &'static str, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let mut year = 1970 + days.div_euclid(DAYS_OF_400_YEARS) * 400;
    let mut day = days.rem_euclid(DAYS_OF_400_YEARS);
    while day >= 365 + leap(year) {
        day -= 365 + leap(year);
        year += 1;
    }
    for (month, length) in MONTHS {
        let length = if month == "Feb" { length + leap(year) } else { length };
        if day < length {
            return (year, month, day + 1);
        }
        day -= length;
    }
    (year, "Dec", 31)
}

/// Returns the number of leap days of a year, 0 or 1.
fn leap(year: i64) -> i64 {
    i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (ms, text) in [
            (0, "Thu Jan 01 00:00:00 UTC 1970"),
            (951_782_400_000, "Tue Feb 29 00:00:00 UTC 2000"),
            (1_795_421_931_000, "Mon Nov 23 08:18:51 UTC 2026"),
            (4_107_542_399_999, "Sun Feb 28 23:59:59 UTC 2100"),
            (4_107_542_400_000, "Mon Mar 01 00:00:00 UTC 2100"),
            (-1, "Wed Dec 31 23:59:59 UTC 1969"),
        ] {
            assert_eq!(Date(ms).to_string(), text);
        }
    }
}
