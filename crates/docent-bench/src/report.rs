use crate::clients::Which;
use crate::measures::{MEASURES, Target};
use crate::samples::Samples;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::fmt;

/// Results of all rounds, as a table in Markdown.
#[derive(Debug, Default)]
pub(crate) struct Report {
    samples: HashMap<(&'static str, &'static str), Samples>,
}

impl Report {
    /// Adds the figures that a worker printed.
    ///
    /// # Errors
    ///
    /// Fails if a measure is missing.
    pub(crate) fn add(&mut self, which: Which, printed: &str) -> Result<()> {
        let values: HashMap<_, _> = printed.lines().filter_map(|line| line.split_once(' ')).collect();
        for measure in MEASURES {
            let value = values.get(measure.key).with_context(|| format!("no {} of {which}", measure.key))?;
            self.samples.entry((measure.key, which.name())).or_default().push(value.parse()?);
        }
        Ok(())
    }

    fn samples(&self, key: &'static str, which: Which) -> Samples {
        self.samples.get(&(key, which.name())).cloned().unwrap_or_default()
    }

    /// The median, over the rounds, of the ratios of Docent's figure to the other client's.
    fn ratio(&self, key: &'static str, other: Which) -> f64 {
        self.samples(key, Which::Docent).ratios(&self.samples(key, other)).median()
    }

    fn compared(&self, key: &'static str, other: Which) -> String {
        let noise = self.samples(key, Which::Docent).overlaps(&self.samples(key, other));
        format!("{:.2}{}", self.ratio(key, other), if noise { ", within noise" } else { "" })
    }

    fn verdict(&self, key: &'static str, target: Target) -> String {
        let met = self.ratio(key, target.of) <= target.ratio;
        format!("{} × {}: {}", target.ratio, target.of, if met { "met" } else { "missed" })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![[
            "median (min..max)".to_owned(),
            Which::Docent.to_string(),
            Which::Bare.to_string(),
            Which::ZookeeperClient.to_string(),
            "docent / bare".to_owned(),
            "docent / zookeeper-client".to_owned(),
            "target".to_owned(),
        ]];
        for measure in MEASURES {
            rows.push([
                measure.title.to_owned(),
                self.samples(measure.key, Which::Docent).to_string(),
                self.samples(measure.key, Which::Bare).to_string(),
                self.samples(measure.key, Which::ZookeeperClient).to_string(),
                self.compared(measure.key, Which::Bare),
                self.compared(measure.key, Which::ZookeeperClient),
                measure.target.map_or_else(String::new, |target| self.verdict(measure.key, target)),
            ]);
        }
        write_table(f, &rows)
    }
}

/// Writes rows, of which the first is the header.
pub(crate) fn write_table<const N: usize>(f: &mut fmt::Formatter<'_>, rows: &[[String; N]]) -> fmt::Result {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    for (index, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            write!(f, "| {cell:<width$} ", width = width(column))?;
        }
        writeln!(f, "|")?;
        if index == 0 {
            (0..N).try_for_each(|column| write!(f, "|{}", "-".repeat(width(column) + 2)))?;
            writeln!(f, "|")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_worker_report_is_an_error() {
        assert!(Report::default().add(Which::Bare, "get_p50 100\n").is_err());
    }

    #[test]
    fn ratios_are_docent_to_peer_and_are_marked_if_they_may_be_chance() {
        let mut report = Report::default();
        let printed =
            |value: u32| MEASURES.iter().map(|m| format!("{} {value}\n", m.key)).collect::<String>();
        for (docent, bare, peer) in [(100, 90, 200), (110, 105, 220), (90, 100, 150)] {
            report.add(Which::Docent, &printed(docent)).unwrap();
            report.add(Which::Bare, &printed(bare)).unwrap();
            report.add(Which::ZookeeperClient, &printed(peer)).unwrap();
        }
        assert_eq!(report.compared("get_p50", Which::Bare), "1.05, within noise");
        assert_eq!(report.compared("get_p50", Which::ZookeeperClient), "0.50");
        assert!(report.to_string().contains("0.6 × zookeeper-client: met"));
    }
}
