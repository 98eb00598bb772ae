use anyhow::ensure;
use docent::{Client, Error, Mutex};
use docent_examples::{Ensemble, own_path};
use std::fmt::Display;
use std::io::{Write, stdout};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Resources of all steps: the servers, a path in their tree, and output.
pub(crate) struct Stage {
    ensemble: Ensemble,
    root: String,
    start: Instant,
}

impl Stage {
    pub(crate) async fn set() -> anyhow::Result<Self> {
        let stage =
            Self { ensemble: Ensemble::from_env().await?, root: own_path("tour"), start: Instant::now() };
        stage.print("tour", stage.ensemble.description());
        Ok(stage)
    }

    /// Returns the time limit of the tour, most of which is spent waiting for a session to expire.
    pub(crate) fn limit(&self) -> Duration {
        self.ensemble.servers.session_timeout * 10
    }

    pub(crate) fn ensemble(&self) -> &Ensemble {
        &self.ensemble
    }

    /// Returns the path below which all nodes of the tour are.
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    /// Creates a client with its own session.
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
    pub(crate) fn print(&self, actor: &str, what: impl Display) {
        write_line(format_args!("{:8.3} s  {actor:<9} {what}", self.start.elapsed().as_secs_f64()));
    }

    /// Prints the participants in the line of a lock.
    pub(crate) async fn show_line(&self, mutex: &Mutex) -> Result<(), Error> {
        let line = mutex.participants().await?;
        let names: Vec<_> = line.iter().map(|one| String::from_utf8_lossy(&one.identity)).collect();
        self.print("line", format_args!("{} in it: {}", line.len(), names.join(", ")));
        Ok(())
    }

    /// Waits until `count` participants are in the line, including the holder.
    pub(crate) async fn until_in_line(&self, mutex: &Mutex, count: usize) -> anyhow::Result<()> {
        const LIMIT: Duration = Duration::from_secs(5);
        let start = Instant::now();
        loop {
            let line = mutex.participants().await?.len();
            if line == count {
                return Ok(());
            }
            ensure!(
                start.elapsed() < LIMIT,
                "{line} participants in the line of {}, expected {count}",
                mutex.path()
            );
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Ignores errors, because the reader may have ended: `tour | head`.
fn write_line(line: impl Display) {
    let _ = writeln!(stdout(), "{line}");
}
