//! Confirmation of verbs that delete.

use crate::app::App;
use crate::exit::Failure;
use std::io::{self, IsTerminal};
use tokio::task::spawn_blocking;

impl App {
    /// Asks for confirmation on the terminal.
    ///
    /// # Errors
    /// `Usage` without a terminal; `Other` with the text `refused` for any answer except `y` or `yes`.
    pub(super) async fn confirm(&self, question: &str, refused: &str) -> Result<(), Failure> {
        if !io::stdin().is_terminal() {
            return Err(Failure::usage(
                "standard input is not a terminal, so nothing can be confirmed: give --yes",
            ));
        }
        self.output.prompt(&format!("{question} [y/N]"));
        let mut answer = String::new();
        let read = spawn_blocking(move || io::stdin().read_line(&mut answer).map(|_| answer)).await;
        match read {
            Ok(Ok(answer)) if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) => Ok(()),
            _ => Err(Failure::other(refused)),
        }
    }
}
