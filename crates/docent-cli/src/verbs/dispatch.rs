use super::{completions, dev, doctor, elect, lock, man};
use crate::app::App;
use crate::cli::{Cli, Verb};
use crate::exit::Outcome;
use crate::output::Output;

/// Runs the verb that was given.
pub(crate) async fn run(cli: Cli, output: Output) -> Outcome {
    let app = App { global: cli.global, output };
    match cli.verb {
        Verb::Lock(arguments) => lock::run(&app, &arguments).await,
        Verb::Elect(arguments) => elect::run(&app, &arguments).await,
        Verb::Dev(arguments) => dev::run(&app, &arguments).await,
        Verb::Doctor(arguments) => doctor::run(&app, &arguments).await,
        Verb::Completions(arguments) => completions::run(&app, &arguments),
        Verb::Man(arguments) => man::run(&app, &arguments),
    }
}
