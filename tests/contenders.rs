//! Contenders of the batteries of faults: in this process, and in separate processes that tests freeze.

use docent::client::ClientBuilder;
use docent::{Client, ErrorKind};
use docent_battery::battery::{ContenderSetup, Fault, Step};
use std::env;
use std::error::Error;
use std::io;
use std::process::Command;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Connects the client of a contender.
///
/// # Panics
///
/// Panics if the client does not connect.
pub async fn connect(setup: &ContenderSetup) -> Client {
    setup
        .client_builder()
        .operation_timeout(crate::PATIENCE)
        .connect()
        .await
        .expect("a running server opens a session")
}

/// Returns true if the documentation of every guard allows an error of this kind.
pub fn is_documented(step: Step, fault: Fault, kind: &ErrorKind) -> bool {
    match (step, fault) {
        (Step::Acquire, Fault::Closed) => *kind == ErrorKind::Closed,
        (Step::Verify | Step::Release, Fault::Closed) => {
            matches!(kind, ErrorKind::Closed | ErrorKind::Lost(_))
        }
        (Step::Verify | Step::Release, Fault::Expired | Fault::Lost) => matches!(kind, ErrorKind::Lost(_)),
        _ => false,
    }
}

/// Returns a program that contends with `setup`. The caller adds further arguments.
pub fn process(program: &str, setup: &ContenderSetup) -> Command {
    let mut command = Command::new(program);
    command.args([&setup.connect_string, &setup.namespace]);
    command.args([setup.session_timeout, setup.tick].map(|time| time.as_millis().to_string()));
    command
}

/// Parses the command line of such a program. Returns its client and its further arguments, which follow
/// `CONNECT-STRING NAMESPACE TIMEOUT-MS TICK-MS`.
///
/// # Errors
///
/// Fails if the number of arguments is wrong, or if the client does not connect.
pub async fn in_process<const FURTHER: usize>() -> Result<(Client, [String; FURTHER]), Box<dyn Error>> {
    let (builder, further) = builder_in_process()?;
    Ok((builder.connect().await?, further))
}

/// Does the same as [`in_process`], without connecting.
///
/// # Errors
///
/// Fails if the number of arguments is wrong.
pub fn builder_in_process<const FURTHER: usize>() -> Result<(ClientBuilder, [String; FURTHER]), Box<dyn Error>>
{
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [connect_string, namespace, timeout, tick, further @ ..] = &arguments[..] else {
        return Err("the setup is missing: see the program's documentation".into());
    };
    let Ok(further) = further.to_vec().try_into() else {
        return Err(format!(
            "{FURTHER} arguments are needed after the setup: see the program's documentation"
        )
        .into());
    };
    let millis = |text: &str| text.parse().map(Duration::from_millis);
    let builder = Client::builder(connect_string)
        .namespace(namespace)
        .session_timeout(millis(timeout)?)
        .server_tick(millis(tick)?);
    Ok((builder, further))
}

/// Runs the dialogue of such a program when it holds: prints `held`, and then, for each line of its input,
/// whether its guard is `held` or `lost`.
///
/// # Errors
///
/// Fails if the standard input cannot be read.
pub async fn answer(is_held: impl Fn() -> bool) -> io::Result<()> {
    println!("held");
    let mut questions = BufReader::new(tokio::io::stdin()).lines();
    while questions.next_line().await?.is_some() {
        println!("{}", if is_held() { "held" } else { "lost" });
    }
    Ok(())
}
