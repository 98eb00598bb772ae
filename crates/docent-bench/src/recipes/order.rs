use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

/// Order for a driver. It is one line: `NAME CONNECT-STRING PATH KEY=NUMBER …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) name: String,
    pub(super) connect: String,
    /// Path that no other order has used, or the folder of the existing services.
    pub(super) path: String,
    settings: HashMap<String, u64>,
}

impl Order {
    /// Parses a line.
    ///
    /// # Errors
    ///
    /// Fails if the line is not an order.
    pub(super) fn parse(line: &str) -> Result<Self> {
        let mut words = line.split(' ').map(str::to_owned);
        let mut word = || words.next().with_context(|| format!("the order {line:?} is incomplete"));
        let (name, connect, path) = (word()?, word()?, word()?);
        let mut settings = HashMap::new();
        for setting in words {
            let (key, number) =
                setting.split_once('=').with_context(|| format!("the setting {setting:?} has no number"))?;
            settings.insert(key.to_owned(), number.parse().with_context(|| setting.clone())?);
        }
        Ok(Self { name, connect, path, settings })
    }

    /// Returns a setting, or zero if it is missing.
    pub(super) fn number(&self, key: &str) -> u64 {
        self.settings.get(key).copied().unwrap_or_default()
    }

    /// Returns a setting as a count, or zero if it is missing.
    pub(super) fn count(&self, key: &str) -> usize {
        usize::try_from(self.number(key)).unwrap_or(usize::MAX)
    }

    /// Returns a setting in milliseconds.
    pub(super) fn millis(&self, key: &str) -> Duration {
        Duration::from_millis(self.number(key))
    }
}

/// Figures of a driver, each with its key: the last line of its answer to an order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer(BTreeMap<String, f64>);

impl Answer {
    /// Parses the line `ok KEY=NUMBER …`.
    ///
    /// # Errors
    ///
    /// Fails with the driver's message if the driver failed.
    pub(super) fn parse(line: &str) -> Result<Self> {
        let Some(figures) = line.strip_prefix("ok") else { bail!("{line}") };
        let mut answer = Self::default();
        for figure in figures.split_whitespace() {
            let (key, value) = figure.split_once('=').with_context(|| format!("{figure:?} has no value"))?;
            answer.set(key, value.parse().with_context(|| figure.to_owned())?);
        }
        Ok(answer)
    }

    pub(super) fn set(&mut self, key: &str, value: f64) {
        self.0.insert(key.to_owned(), value);
    }

    pub(super) fn with(mut self, key: &str, value: f64) -> Self {
        self.set(key, value);
        self
    }

    /// Returns a figure. `rate` (operations per second) and `cpu` (microseconds per operation) are computed
    /// from other figures.
    pub(super) fn figure(&self, key: &str) -> Option<f64> {
        let value = |key: &str| self.0.get(key).copied();
        match key {
            "rate" => Some(value("ops")? / value("seconds")?),
            "cpu" => Some(value("cpu_micros")? / value("ops").filter(|ops| *ops > 0.0)?),
            key => value(key),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ok")?;
        self.0.iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_a_line_of_words_and_numbers() {
        let order = Order::parse("mutex 127.0.0.1:2181 /bench/1 clients=8 window=1500").unwrap();
        assert_eq!((order.name.as_str(), order.path.as_str()), ("mutex", "/bench/1"));
        assert_eq!((order.count("clients"), order.count("batch")), (8, 0));
        assert_eq!(order.millis("window"), Duration::from_millis(1500));
        assert!(Order::parse("mutex 127.0.0.1:2181").is_err());
        assert!(Order::parse("mutex a /b clients=many").is_err());
    }

    #[test]
    fn an_answer_round_trips() {
        let answer = Answer::default().with("ops", 300.0).with("seconds", 1.5).with("cpu_micros", 600.0);
        assert_eq!(Answer::parse(&answer.to_string()).unwrap(), answer);
        assert_eq!((answer.figure("rate"), answer.figure("cpu")), (Some(200.0), Some(2.0)));
        assert_eq!(answer.figure("p50"), None);
    }

    #[test]
    fn a_failed_driver_is_an_error_with_its_words() {
        let error = Answer::parse("error KeeperException: no node").unwrap_err();
        assert_eq!(error.to_string(), "error KeeperException: no node");
    }

    #[test]
    fn without_operations_there_is_no_cpu_per_operation() {
        assert_eq!(Answer::parse("ok ops=0 seconds=1 cpu_micros=5").unwrap().figure("cpu"), None);
    }
}
