use super::process::Kind;
use crate::report::write_table;
use crate::samples::Samples;
use std::collections::HashMap;
use std::fmt;

/// Results of both servers, as a table in Markdown.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Titles, in the order of the first measurement.
    titles: Vec<String>,
    samples: HashMap<(String, Kind), Samples>,
}

impl Report {
    /// Adds a value of a measure.
    pub(super) fn add(&mut self, title: &str, kind: Kind, value: f64) {
        if !self.titles.iter().any(|known| known == title) {
            self.titles.push(title.to_owned());
        }
        self.samples.entry((title.to_owned(), kind)).or_default().push(value);
    }

    fn samples(&self, title: &str, kind: Kind) -> Samples {
        self.samples.get(&(title.to_owned(), kind)).cloned().unwrap_or_default()
    }

    fn row(&self, title: &str) -> [String; 4] {
        let [embedded, real] = Kind::BOTH.map(|kind| self.samples(title, kind));
        let ratio = format!("{:.2}", embedded.ratios(&real).median());
        [title.to_owned(), embedded.to_string(), real.to_string(), ratio]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["median (min..max)", "embedded", "real", "embedded / real"].map(str::to_owned);
        let rows: Vec<_> =
            std::iter::once(head).chain(self.titles.iter().map(|title| self.row(title))).collect();
        write_table(f, &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measure_has_a_row_with_the_ratio_of_both() {
        let mut report = Report::default();
        for (embedded, real) in [(200.0, 100.0), (300.0, 100.0), (360.0, 120.0)] {
            report.add("reads, 1/s", Kind::Embedded, embedded);
            report.add("reads, 1/s", Kind::Real, real);
        }
        report.add("memory, MB", Kind::Embedded, 10.0);
        report.add("memory, MB", Kind::Real, 80.0);
        let table = report.to_string();
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert!(rows[0].starts_with("| reads, 1/s") && rows[0].contains("| 3.00 "), "{table}");
        assert!(rows[1].starts_with("| memory, MB") && rows[1].contains("| 0.12 "), "{table}");
    }
}
