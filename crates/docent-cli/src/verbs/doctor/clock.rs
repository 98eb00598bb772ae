use super::finding::{Cause, Finding};
use docent::client::{Client, ErrorKind};
use docent::time::ClockCheck;
use std::time::Duration;

const CHECK: &str = "clock";

/// Share of the period by which the local clock may be slower: leases allow for that much.
const DRIFT: u32 = 100;

/// Compares the pace of this machine's clock with that of the servers.
pub(super) async fn check(client: &Client, period: Duration) -> Finding {
    match client.check_clock(period).await {
        Ok(pace) => judged(pace, period),
        Err(error) if error.kind() == ErrorKind::NoAuth => {
            let text =
                format!("the pace cannot be measured without a write, and that is not allowed: {error}");
            let remedy = "give a namespace (--namespace) in which this client may create nodes, or let an administrator \
                          create /_docent with READ and CREATE for everyone; recipes below folders in which this \
                          client may create nodes work without either";
            Finding::failure(CHECK, Cause::Permission, text, remedy)
        }
        Err(error) => {
            let text = format!("the pace cannot be measured: {error}");
            Finding::failure(
                CHECK,
                Cause::Unreachable,
                text,
                "a write has to succeed: follow the remedies above",
            )
        }
    }
}

fn judged(pace: ClockCheck, period: Duration) -> Finding {
    let behind = pace.behind();
    if behind > period / DRIFT {
        let text = format!(
            "this machine's clock lost {behind:?} in {:?}: leases last longer than is safe",
            pace.servers
        );
        let remedy = "mend the clock source of this machine, and do not pause or move its virtual machine";
        return Finding::failure(CHECK, Cause::Setting, text, remedy);
    }
    let within = pace.uncertainty;
    Finding::ok(
        CHECK,
        format!("this machine's clock keeps pace with the servers', within {within:.1?} in {period:?}"),
    )
}
