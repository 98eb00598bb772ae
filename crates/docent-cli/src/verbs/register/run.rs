use super::arguments::Arguments;
use super::health;
use super::instance::instance;
use super::leave::Leave;
use crate::app::App;
use crate::child::{ChildCommand, Signals, is_end, is_stop, run_after};
use crate::exit::{Ending, Failure, Outcome};
use docent::Released;
use docent::discovery::{Registration, RegistrationStatus, Registry};
use serde::Serialize;
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;
use tokio::time::sleep;

/// Interval at which a registration that is not announced yet is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A registration, as printed.
#[derive(Debug, Serialize)]
struct Announced<'a> {
    path: &'a str,
    id: &'a str,
}

/// Announces the instance, runs the command or waits for a signal, and deregisters the instance.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    let instance = instance(arguments)?;
    app.with_signals(async |client, signals| {
        let registry = Registry::builder(client, &arguments.root).parents(arguments.parents);
        let registry = match arguments.neighbour {
            Some(neighbour) => registry.neighbour(neighbour).build()?,
            None => registry.build()?,
        };
        let registration = registry.announce(instance)?;
        tokio::select! {
            announced = signals.or(registration.announced()) => announced??,
            never = report_occupied(app, &registration) => match never {},
        }
        let outcome = announced(app, &registration, arguments, signals).await;
        // The outcome of the command takes precedence: a node that could not be deleted ends with the
        // session.
        match signals.or(registration.deregister()).await {
            Ok(Ok(Released::Done)) => {}
            Ok(Ok(Released::Pending)) => {
                app.output.remark("no server answered in time; the instance disappears with the session");
            }
            Ok(Err(error)) => app.output.remark(format!("the instance could not be deregistered: {error}")),
            Err(_) => app.output.remark("a signal ended the wait for the instance to be deregistered"),
        }
        outcome
    })
    .await
}

/// Reports that another session has an instance with this id, whose end is awaited.
async fn report_occupied(app: &App, registration: &Registration) -> Infallible {
    loop {
        sleep(POLL_INTERVAL).await;
        if let RegistrationStatus::Occupied { session_id } = registration.status() {
            let path = registration.path();
            app.output.remark(format!("waiting until {path} is free: session {session_id:#x} holds it"));
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
    let leave = Leave::new(app, registration, arguments);
    let work = async {
        match ChildCommand::new(&arguments.command) {
            Some(command) => {
                let command = command.under(&registration.path(), None);
                let before = async |signal| {
                    if is_stop(signal) {
                        leave.drain().await;
                    }
                };
                let after = |signal| leave.passed_on(signal);
                run_after(&command, signals, before, after).await.map(Ending::Child)
            }
            None => {
                print(app, registration)?;
                if is_end(signals.next().await) {
                    // Another signal ends the drain.
                    let _ = signals.or(leave.drain()).await;
                }
                Ok(Ending::Done)
            }
        }
    };
    tokio::select! {
        done = work => done,
        never = health::keep_checked(app, registration, arguments, &leave) => match never {},
        never = leave.cancel_if_command_survives() => match never {},
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
