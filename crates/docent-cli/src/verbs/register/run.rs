use super::arguments::Arguments;
use super::health;
use super::instance::instance;
use crate::app::App;
use crate::child::{ChildCommand, Signals, is_end, run_after};
use crate::exit::{Ending, Failure, Outcome};
use docent::discovery::{Registration, RegistrationStatus, Registry};
use serde::Serialize;
use std::cell::Cell;
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;
use tokio::time::sleep;

/// Time between two looks at a registration that is not announced yet.
const LOOK: Duration = Duration::from_millis(200);

/// A registration as it is printed.
#[derive(Debug, Serialize)]
struct Announced<'a> {
    path: &'a str,
    id: &'a str,
}

/// Announces the instance, runs the command or waits for a signal, and deregisters.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    let instance = instance(arguments)?;
    app.with_signals(async |client, signals| {
        let registry = Registry::new(client, &arguments.root)?;
        let registration = registry.announce(instance)?;
        tokio::select! {
            announced = signals.or(registration.announced()) => announced??,
            never = tell_occupied(app, &registration) => match never {},
        }
        let outcome = announced(app, &registration, arguments, signals).await;
        // What the command said counts: a node that stands goes with the session.
        match signals.or(registration.deregister()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => app.output.remark(format!("the instance could not be deregistered: {error}")),
            Err(_) => app.output.remark("a signal ended the wait for the instance to be deregistered"),
        }
        outcome
    })
    .await
}

/// Tells when another session has an instance with this id, whose end is waited for.
async fn tell_occupied(app: &App, registration: &Registration) -> Infallible {
    loop {
        sleep(LOOK).await;
        if let RegistrationStatus::Occupied { session_id } = registration.status() {
            let path = registration.path();
            app.output.remark(format!("waiting until {path} is free: session {session_id:#x} has it"));
            return pending().await;
        }
    }
}

async fn announced(
    app: &App,
    registration: &Registration,
    arguments: &Arguments,
    signals: &mut Signals,
) -> Outcome {
    let is_leaving = Cell::new(false);
    let before = async |signal| {
        if is_end(signal) && !is_leaving.replace(true) {
            drain(app, registration, arguments).await;
        }
    };
    let work = async {
        match ChildCommand::new(&arguments.command) {
            Some(command) => {
                let command = command.under(&registration.path(), None);
                run_after(&command, signals, before).await.map(Ending::Child)
            }
            None => {
                print(app, registration)?;
                let signal = signals.next().await;
                // Another signal ends the drain.
                let _ = signals.or(before(signal)).await;
                Ok(Ending::Done)
            }
        }
    };
    tokio::select! {
        done = work => done,
        never = health::keep_checked(app, registration, arguments, &is_leaving) => match never {},
    }
}

/// Disables the instance, so that nobody gives it work any more, and waits for work that is under way.
async fn drain(app: &App, registration: &Registration, arguments: &Arguments) {
    if arguments.drain.is_zero() {
        return;
    }
    match registration.set_enabled(false).await {
        Ok(()) => sleep(arguments.drain).await,
        // Nobody can have heard of it then.
        Err(error) => app.output.remark(format!("the instance could not be disabled: {error}")),
    }
}

fn print(app: &App, registration: &Registration) -> Result<(), Failure> {
    let (path, id) = (registration.path(), registration.id());
    match app.output.is_json() {
        true => app.output.json(&Announced { path: &path, id: &id })?,
        false => app.output.line(format!("{path} {id}"))?,
    }
    Ok(())
}
