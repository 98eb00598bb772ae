use super::arguments::Arguments;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::Table;
use docent::inspect::{ServerState, Vitals};
use docent::transport::{ServerAddress, TcpTransport};
use futures_util::future::join_all;
use std::fmt::Display;
use std::time::Duration;

/// Upper limit for the time of each query to a server.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Queries all servers at the same time, and lists them in the order of `--connect`.
pub(crate) async fn run(app: &App, _: &Arguments) -> Outcome {
    let options = app.global.client_options()?;
    let servers =
        ServerAddress::all_of(&options.connect).map_err(|error| Failure::usage(error.to_string()))?;
    let patience = options.operation_timeout.unwrap_or(PATIENCE);
    let mut signals = crate::child::Signals::listen()?;
    let all = join_all(servers.iter().map(|server| Vitals::query(&TcpTransport, server, patience)));
    let all = signals.or(all).await?;
    if app.output.is_json() {
        all.iter().try_for_each(|vitals| app.output.json(vitals))?;
    } else {
        app.output.table(&table(&all))?;
    }
    match all.iter().any(|vitals| vitals.state.is_answer()) {
        true => Ok(Ending::Done),
        false => Err(Failure::unreachable("no server answered")),
    }
}

fn table(all: &[Vitals]) -> Table {
    let mut table = Table::new([
        "SERVER",
        "STATE",
        "MODE",
        "VERSION",
        "ZXID",
        "LATENCY",
        "CONNECTIONS",
        "OUTSTANDING",
        "ZNODES",
        "WATCHES",
        "REMARKS",
    ]);
    for vitals in all {
        let latency = [vitals.latency_min_ms, vitals.latency_avg_ms, vitals.latency_max_ms];
        let latency = latency.iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join("/");
        let latency = if latency.is_empty() { latency } else { format!("{latency} ms") };
        let remark = match vitals.state {
            ServerState::Serving if vitals.watches.is_none() => "mntr is disabled",
            _ => vitals.reason.as_deref().unwrap_or_default(),
        };
        table.row([
            vitals.server.clone(),
            vitals.state.name().to_owned(),
            text(vitals.mode.as_ref()),
            text(vitals.version.as_ref()),
            text(vitals.zxid.as_ref()),
            latency,
            text(vitals.connections),
            text(vitals.outstanding),
            text(vitals.znodes),
            text(vitals.watches),
            remark.to_owned(),
        ]);
    }
    table
}

fn text(value: Option<impl Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
