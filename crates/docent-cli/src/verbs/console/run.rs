use super::arguments::Arguments;
use super::certificate::Certificate;
use super::serve::{Server, serve};
use crate::app::App;
use crate::child::Signals;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::Output;
use docent::Client;
use docent_console::{Access, Console};
use serde::Serialize;
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;

/// A page that is served, as printed.
#[derive(Debug, Serialize)]
struct Line<'a> {
    url: &'a str,
}

/// What the page is served with, checked and read.
struct Prepared {
    access: Access,
    certificate: Option<Certificate>,
    listener: TcpListener,
}

/// Serves the page until a signal comes.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    let mut signals = Signals::listen()?;
    let prepared = prepare(arguments).await?;
    app.with_client(&mut signals, async |client, signals| {
        let url = url(prepared.listener.local_addr()?, prepared.certificate.is_some());
        let console = console(client, arguments, prepared.access, prepared.certificate.is_some())?;
        let router = console.router();
        let server = Server { listener: prepared.listener, certificate: prepared.certificate, router };
        tokio::select! {
            printed = print(&app.output, url) => printed?,
            _ = signals.next() => return Ok(Ending::Done),
        }
        serve(server, app, signals).await;
        Ok(Ending::Done)
    })
    .await
}

/// Checks the arguments, reads the files and starts to listen, all before the servers are asked.
async fn prepare(arguments: &Arguments) -> Result<Prepared, Failure> {
    arguments.check_exposure()?;
    let access = arguments.access()?;
    let certificate = match arguments.files_of_tls() {
        Some((chain, key)) => Some(Certificate::read(&chain, &key)?),
        None => None,
    };
    let address = arguments.listen;
    let listener = TcpListener::bind(address).await;
    let listener =
        listener.map_err(|error| Failure::other(format!("cannot listen on {address}: {error}")))?;
    Ok(Prepared { access, certificate, listener })
}

fn console(client: &Client, arguments: &Arguments, access: Access, is_tls: bool) -> Result<Console, Failure> {
    let mut builder = Console::builder(client)
        .root(&arguments.root)
        .access(access)
        .hosts(arguments.hosts.iter().cloned())
        .holder_age(arguments.holder_age)
        .head_age(arguments.head_age);
    if arguments.allow_actions {
        builder = builder.allow_actions();
    }
    if arguments.no_data {
        builder = builder.hide_data();
    }
    if is_tls {
        builder = builder.secure_cookies();
    }
    Ok(builder.build()?)
}

fn url(address: SocketAddr, is_tls: bool) -> String {
    format!("{}://{address}/", if is_tls { "https" } else { "http" })
}

/// Prints the address on a separate thread, because a pipe that is not read must not block the page.
async fn print(output: &Output, url: String) -> Result<(), Failure> {
    let output = output.clone();
    let printed =
        spawn_blocking(
            move || if output.is_json() { output.json(&Line { url: &url }) } else { output.line(&url) },
        );
    Ok(printed.await.map_err(io::Error::from)??)
}
