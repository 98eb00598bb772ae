use super::process::Kind;
use super::report::Report;
use super::{nodes, rates, sessions};
use anyhow::Result;
use clap::Args;

/// Command line of the server bench.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of rounds of the rates, in each of which both servers are measured one after the other.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Use a tenth of all requests, nodes, watches and sessions.
    #[arg(long)]
    quick: bool,
}

/// Share of the full counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    divisor: usize,
}

impl Scale {
    pub(super) fn of(self, count: usize) -> usize {
        count / self.divisor
    }
}

pub(crate) async fn run(options: Options) -> Result<()> {
    let scale = Scale { divisor: if options.quick { 10 } else { 1 } };
    let mut report = Report::default();
    rates::measure(options.rounds, scale, &mut report).await?;
    for kind in Kind::BOTH {
        eprintln!("measuring the memory of the {kind}");
        nodes::measure(kind, scale, &mut report).await?;
        eprintln!("measuring the sessions of the {kind}");
        sessions::measure(kind, scale, &mut report).await?;
    }
    println!("server bench, {} rounds{}", options.rounds, if options.quick { ", quick" } else { "" });
    println!("{report}");
    Ok(())
}
