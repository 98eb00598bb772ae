//! The shop: `shop` shows it, `shop serve` is one copy.

use clap::{Parser, Subcommand};
use docent_shop::demo::{self, Show};
use docent_shop::service;
use docent_shop::settings::Settings;

/// Three copies of a shop, and a caller that balances over them. One copy is killed, one stands still, the
/// servers restart, one copy drains; the caller says what it saw.
///
/// It starts a server of its own. DOCENT_CONNECT=host:port makes it use a real ensemble; a tickTime of 2 s is
/// assumed there.
#[derive(Debug, Parser)]
#[command(name = "shop", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
    #[command(flatten)]
    show: Show,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// One copy, until SIGTERM.
    Serve(Settings),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Cli { role, show } = Cli::parse();
    match role {
        Some(Role::Serve(settings)) => service::run(settings).await,
        None => demo::run(show).await,
    }
}
