//! The shop: `shop` runs the show, `shop serve` runs one copy.

use clap::{Parser, Subcommand};
use docent_shop::demo::{self, Show};
use docent_shop::service;
use docent_shop::settings::Settings;

/// Three copies of a shop, and a caller that balances over them. One copy is killed, one is suspended, the
/// servers restart, one copy drains; the caller reports what it observed.
///
/// The example starts its own server. DOCENT_CONNECT=host:port makes it use a real ensemble, for which it
/// assumes a tickTime of 2 s.
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
    /// Run one copy, until SIGTERM
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
