use crate::world::owner_of;
use docent::inspect::{Report, Since, Stake};
use docent::time::parse_duration;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use std::time::{Duration, SystemTime};

/// Filters of a list, as in the query of its address.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Filter {
    /// Text in the path, or in the name of an owner or waiter; in lower case.
    #[serde(default, deserialize_with = "text")]
    pub(crate) q: String,
    /// Name of a kind, such as `mutex`.
    #[serde(default)]
    pub(crate) kind: String,
    /// Minimum age, such as `10m`.
    #[serde(default)]
    pub(crate) older: String,
    /// `path`, `owner` or `age`.
    #[serde(default)]
    pub(crate) sort: String,
    /// Number of rows before the window.
    #[serde(default, deserialize_with = "number")]
    pub(crate) from: usize,
}

/// A number that is 0 if the text is none: an address is typed by people.
fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    Ok(String::deserialize(deserializer)?.parse().unwrap_or(0))
}

/// Maximum number of characters of a text to search for.
const MAX_TEXT: usize = 200;

/// A text in lower case, which is cut if it is long.
fn text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(String::deserialize(deserializer)?.chars().take(MAX_TEXT).flat_map(char::to_lowercase).collect())
}

impl Filter {
    /// Returns the minimum age, or the text if it is not a duration.
    pub(crate) fn minimum_age(&self) -> Result<Duration, &str> {
        if self.older.is_empty() {
            Ok(Duration::ZERO)
        } else {
            parse_duration(&self.older).ok_or(&self.older)
        }
    }

    /// Returns true if the report is selected. An age that is not a duration selects everything: the page
    /// names the mistake.
    pub(crate) fn selects(&self, report: &Report, now: SystemTime, shows_data: bool) -> bool {
        let minimum = self.minimum_age().unwrap_or_default();
        let age = |since: Since| now.duration_since(since.at).unwrap_or_default();
        (self.kind.is_empty() || report.kind().name() == self.kind)
            && (minimum.is_zero() || report.since().is_some_and(|since| age(since) >= minimum))
            && self.finds(report, shows_data)
    }

    fn finds(&self, report: &Report, shows_data: bool) -> bool {
        let has = |text: &str| text.to_lowercase().contains(&self.q);
        let is_of = |stake: &Stake<'_>| has(&owner_of(stake, shows_data)) || has(stake.name);
        self.q.is_empty() || has(&report.path) || report.stakes().iter().any(is_of)
    }

    /// Sorts reports, which are in the order of their paths.
    pub(crate) fn sort<T: AsRef<Report>>(&self, reports: &mut [T], shows_data: bool) {
        match &*self.sort {
            "age" => reports.sort_by_cached_key(|report| {
                let since = report.as_ref().since().map(|since| since.at);
                (since.is_none(), since)
            }),
            "owner" => reports.sort_by_cached_key(|report| {
                let owner = report.as_ref().stakes().first().map(|stake| owner_of(stake, shows_data));
                (owner.is_none(), owner)
            }),
            _ => {}
        }
    }

    /// Returns the query without `from`, which is empty or ends with `&`.
    pub(crate) fn query(&self) -> String {
        let fields = [("q", &self.q), ("kind", &self.kind), ("older", &self.older), ("sort", &self.sort)];
        let set = fields.into_iter().filter(|(_, value)| !value.is_empty());
        set.map(|(name, value)| format!("{name}={}&", utf8_percent_encode(value, NON_ALPHANUMERIC))).collect()
    }
}
