use anyhow::ensure;
use docent::{Client, Error, Mutex};
use docent_examples::{Ensemble, own_path};
use std::fmt::Display;
use std::io::{Write, stdout};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Means of all steps: the servers, a place in their tree, and a voice.
pub(crate) struct Stage {
    ensemble: Ensemble,
    root: String,
    start: Instant,
}

impl Stage {
    pub(crate) async fn set() -> anyhow::Result<Self> {
        let stage =
            Self { ensemble: Ensemble::from_env().await?, root: own_path("tour"), start: Instant::now() };
        stage.say("tour", stage.ensemble.description());
        Ok(stage)
    }

    /// How long the tour may take, most of which is waiting for a session to expire.
    pub(crate) fn limit(&self) -> Duration {
        self.ensemble.servers.session_timeout * 10
    }

    pub(crate) fn ensemble(&self) -> &Ensemble {
        &self.ensemble
    }

    /// All nodes of the tour are below this path.
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    /// A client with a session of its own.
    pub(crate) async fn client(&self, name: &str) -> Result<Client, Error> {
        self.ensemble.servers.client().identity(name).connect().await
    }

    pub(crate) fn mutex(&self, client: &Client, name: &str) -> Result<Mutex, Error> {
        Mutex::new(client, &format!("{}/{name}", self.root))
    }

    pub(crate) fn headline(&self, text: &str) {
        write_line(format_args!("\n{text}"));
    }

    /// Prints a line with the time since the start.
    pub(crate) fn say(&self, who: &str, what: impl Display) {
        write_line(format_args!("{:8.3} s  {who:<9} {what}", self.start.elapsed().as_secs_f64()));
    }

    /// Prints who is in the line of a lock.
    pub(crate) async fn show_line(&self, mutex: &Mutex) -> Result<(), Error> {
        let line = mutex.participants().await?;
        let names: Vec<_> = line.iter().map(|one| String::from_utf8_lossy(&one.identity)).collect();
        self.say("line", format_args!("{} in it: {}", line.len(), names.join(", ")));
        Ok(())
    }

    /// Waits until `count` are in the line, the holder included.
    pub(crate) async fn until_in_line(&self, mutex: &Mutex, count: usize) -> anyhow::Result<()> {
        const LIMIT: Duration = Duration::from_secs(5);
        let start = Instant::now();
        loop {
            let line = mutex.participants().await?.len();
            if line == count {
                return Ok(());
            }
            ensure!(start.elapsed() < LIMIT, "{line} in the line of {}, not {count}", mutex.path());
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Nobody may be listening any more: `tour | head`.
fn write_line(line: impl Display) {
    let _ = writeln!(stdout(), "{line}");
}
