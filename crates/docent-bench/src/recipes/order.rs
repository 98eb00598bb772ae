use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

/// Order for a driver, which is one line: `NAME CONNECT-STRING PATH KEY=NUMBER …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) name: String,
    pub(super) connect: String,
    /// Path that nothing else has used yet, or the folder of services that stand already.
    pub(super) path: String,
    settings: HashMap<String, u64>,
}

impl Order {
    /// Reads a line.
    ///
    /// # Errors
    /// When it is no order.
    pub(super) fn parse(line: &str) -> Result<Self> {
        let mut words = line.split(' ').map(str::to_owned);
        let mut word = || words.next().with_context(|| format!("{line:?} ends early"));
        let (name, connect, path) = (word()?, word()?, word()?);
        let mut settings = HashMap::new();
        for setting in words {
            let (key, number) =
                setting.split_once('=').with_context(|| format!("no number in {setting:?}"))?;
            settings.insert(key.to_owned(), number.parse().with_context(|| setting.clone())?);
        }
        Ok(Self { name, connect, path, settings })
    }

    /// Setting, or zero.
    pub(super) fn number(&self, key: &str) -> u64 {
        self.settings.get(key).copied().unwrap_or_default()
    }

    /// Setting as a count, or zero.
    pub(super) fn count(&self, key: &str) -> usize {
        usize::try_from(self.number(key)).unwrap_or(usize::MAX)
    }

    /// Setting in milliseconds.
    pub(super) fn millis(&self, key: &str) -> Duration {
        Duration::from_millis(self.number(key))
    }
}

/// Figures of a driver, each with its key: the last line that it says of an order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer(BTreeMap<String, f64>);

impl Answer {
    /// Reads the line `ok KEY=NUMBER …`.
    ///
    /// # Errors
    /// When the driver failed, with its words.
    pub(super) fn parse(line: &str) -> Result<Self> {
        let Some(figures) = line.strip_prefix("ok") else { bail!("{line}") };
        let mut answer = Self::default();
        for figure in figures.split_whitespace() {
            let (key, value) = figure.split_once('=').with_context(|| format!("no figure in {figure:?}"))?;
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

    /// Figure, of which `rate` (operations a second) and `cpu` (microseconds for each) follow from others.
    pub(super) fn figure(&self, key: &str) -> Option<f64> {
        let told = |key: &str| self.0.get(key).copied();
        match key {
            "rate" => Some(told("ops")? / told("seconds")?),
            "cpu" => Some(told("cpu_micros")? / told("ops").filter(|ops| *ops > 0.0)?),
            key => told(key),
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
    fn an_answer_is_read_as_it_is_written() {
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
    fn nothing_done_has_no_cpu_for_each() {
        assert_eq!(Answer::parse("ok ops=0 seconds=1 cpu_micros=5").unwrap().figure("cpu"), None);
    }
}
