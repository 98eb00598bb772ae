use super::finding::{Cause, Finding, Level};
use super::identity::Identity;
use super::lease::{self, Times};
use super::server::{self, ServerReport};
use super::{access, clock, dialect, ensemble, password, payloads};
use crate::app::App;
use crate::args::duration;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::Table;
use clap::Args;
use docent::client::Options;
use docent::transport::ServerAddress;
use futures_util::future::join_all;
use std::time::Duration;

const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(20);
const DEFAULT_TICK: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Nodes to read as a recipe would, below the chroot; services in /services and in these nodes are
    /// checked for payloads that callers in Java cannot read together
    #[arg(value_name = "PATH", default_value = "/")]
    paths: Vec<String>,

    /// Time for which this machine's clock is compared with the servers' clock; 0 skips the check
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    clock: Duration,
}

/// Checks the servers and the client's settings, and prints a finding for each check.
///
/// # Errors
/// `Usage` for a setting that breaks its rule, before any server is contacted. If checks fail, their number
/// is the text of the error: `Usage` for a path that breaks a rule, `NoPermission`, `Other`, or `Unreachable`
/// if no server serves.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    let options = app.global.client_options()?;
    // A client checks all its settings before it contacts a server.
    options.builder()?.build()?.close().await;
    let servers =
        ServerAddress::all_of(&options.connect).map_err(|error| Failure::usage(error.to_string()))?;
    let reports = join_all(servers.iter().map(|server| server::check(server, &options))).await;
    let summary = ensemble::check(&reports);
    let mut findings: Vec<_> = reports.iter().flat_map(|report| report.findings.clone()).collect();
    let is_served = reports.iter().any(|report| report.opened);
    findings.push(summary);
    findings.extend(password::check(&options));
    if is_served {
        findings.extend(check_client(app, &options, &reports, arguments).await);
    }
    print(app, &findings)?;
    ending(&findings, is_served)
}

/// Checks what affects a client of all servers: its lease, its permissions and its clock.
async fn check_client(
    app: &App,
    options: &Options,
    reports: &[ServerReport],
    arguments: &Arguments,
) -> Vec<Finding> {
    let client = match app.connect().await {
        Ok(client) => client,
        Err(failure) => {
            let remedy = "correct the client's settings: the servers open sessions";
            return vec![Finding::failure("client", Cause::Setting, failure.to_string(), remedy)];
        }
    };
    let requested = options.session_timeout.unwrap_or(DEFAULT_SESSION_TIMEOUT);
    let mut findings = lease::check(&Times {
        requested,
        granted: client.session_timeout().unwrap_or(requested),
        reported_tick: reports.iter().filter_map(|report| report.tick).max(),
        bounds: reports.iter().filter_map(|report| report.bounds).collect(),
        assumed_tick: options.server_tick.unwrap_or(DEFAULT_TICK),
    });
    let (identity, finding) = Identity::query(&client, options).await;
    findings.push(finding);
    for path in &arguments.paths {
        findings.push(access::check(&client, path, options, &identity).await);
    }
    findings.extend(payloads::check(&client, &arguments.paths).await);
    findings.push(dialect::check(&client).await);
    if !arguments.clock.is_zero() {
        findings.push(clock::check(&client, arguments.clock).await);
    }
    crate::connect::close(&client).await;
    findings
}

fn print(app: &App, findings: &[Finding]) -> Result<(), Failure> {
    if app.output.is_json() {
        findings.iter().try_for_each(|finding| app.output.json(finding))?;
        return Ok(());
    }
    let mut table = Table::new(["", "CHECK", "SERVER", "FINDING"]);
    for finding in findings {
        let level = match finding.level {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Failure => "FAILURE",
        };
        let server = finding.server.as_deref().unwrap_or_default();
        table.row([level, finding.check, server, &finding.text]);
        if let Some(remedy) = &finding.remedy {
            table.row(["", "", "", &format!("-> {remedy}")]);
        }
    }
    Ok(app.output.table(&table)?)
}

/// Returns the outcome for the findings. The most serious cause decides the exit code.
fn ending(findings: &[Finding], is_served: bool) -> Outcome {
    let failures: Vec<_> = findings.iter().filter(|finding| finding.is_failure()).collect();
    let has = |cause| failures.iter().any(|finding| finding.cause == cause);
    let text = match failures.len() {
        0 => return Ok(Ending::Done),
        1 => "one check failed".to_owned(),
        count => format!("{count} checks failed"),
    };
    Err(match () {
        () if has(Cause::Usage) => Failure::usage(text),
        () if has(Cause::Permission) => Failure::no_permission(text),
        () if has(Cause::Setting) || is_served => Failure::other(text),
        () => Failure::unreachable(text),
    })
}
