use super::{
    complete, completions, config, console, contenders, contexts, dev, discover, doctor, elect, ensemble,
    inspect, lock, man, queue, register, sessions, wait,
};
use crate::app::App;
use crate::cli::{Cli, Verb};
use crate::exit::{Failure, Outcome};
use crate::output::Output;

/// Runs the requested verb.
pub(crate) async fn run(cli: Cli, output: Output) -> Outcome {
    if let Some(name) = cli.global.output.of_discover_only()
        && !matches!(cli.verb, Verb::Discover(_))
    {
        return Err(Failure::usage(format!("--output {name} works with `discover` only")));
    }
    let app = App { global: cli.global, output };
    match cli.verb {
        Verb::Lock(arguments) => lock::run(&app, &arguments).await,
        Verb::Elect(arguments) => elect::run(&app, &arguments).await,
        Verb::Dev(arguments) => dev::run(&app, &arguments).await,
        Verb::Register(arguments) => register::run(&app, &arguments).await,
        Verb::Discover(arguments) => discover::run(&app, &arguments).await,
        Verb::Config(arguments) => config::run(&app, &arguments).await,
        Verb::Queue(arguments) => queue::run(&app, &arguments).await,
        Verb::Inspect(arguments) => inspect::run(&app, &arguments).await,
        Verb::Ls(arguments) => inspect::list(&app, &arguments).await,
        Verb::Sessions(arguments) => sessions::run(&app, &arguments).await,
        Verb::Wait(arguments) => wait::run(&app, &arguments).await,
        Verb::Revoke(arguments) => contenders::revoke(&app, &arguments).await,
        Verb::Break(arguments) => contenders::delete(&app, &arguments).await,
        Verb::Doctor(arguments) => doctor::run(&app, &arguments).await,
        Verb::Ensemble(arguments) => ensemble::run(&app, &arguments).await,
        Verb::Console(arguments) => console::run(&app, &arguments).await,
        Verb::Contexts(arguments) => contexts::run(&app, &arguments),
        Verb::Complete(arguments) => complete::run(&app, &arguments).await,
        Verb::Completions(arguments) => completions::run(&app, &arguments),
        Verb::Man(arguments) => man::run(&app, &arguments),
    }
}
