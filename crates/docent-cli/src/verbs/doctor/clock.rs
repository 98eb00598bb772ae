use super::finding::{Cause, Finding};
use docent::client::{Client, ErrorKind};
use docent::time::ClockCheck;
use std::time::Duration;

const CHECK: &str = "clock";

/// Part of the period by which the local clock may be slower: leases allow for that much.
const DRIFT: u32 = 100;

/// Compares the rate of this machine's clock with that of the servers.
pub(super) async fn check(client: &Client, period: Duration) -> Finding {
    match client.check_clock(period).await {
        Ok(pace) => judged(pace, period),
        Err(error) if error.kind() == ErrorKind::ReadOnly => {
            Finding::ok(CHECK, "not measured, because that takes a write".to_owned())
        }
        Err(error) if error.kind() == ErrorKind::NoAuth => {
            let text = format!(
                "cannot measure clock drift: that takes a write, which this client may not do: {error}"
            );
            let remedy = "set a namespace in which this client may create nodes (DOCENT_NAMESPACE, or `namespace` in a \
                          context), or ask an administrator to create /_docent with READ and CREATE for everyone; \
                          recipes in folders where this client may create nodes work without either";
            Finding::failure(CHECK, Cause::Permission, text, remedy)
        }
        Err(error) => {
            let text = format!("cannot measure clock drift: {error}");
            Finding::failure(
                CHECK,
                Cause::Unreachable,
                text,
                "the measurement needs a successful write: first fix the problems above",
            )
        }
    }
}

fn judged(pace: ClockCheck, period: Duration) -> Finding {
    let behind = pace.behind();
    if behind > period / DRIFT {
        let text = format!(
            "this machine's clock fell behind the servers by {behind:?} in {:?}: leases last longer than is safe",
            pace.servers
        );
        let remedy = "fix the clock source of this machine, and do not pause or migrate its virtual machine";
        return Finding::failure(CHECK, Cause::Setting, text, remedy);
    }
    let within = pace.uncertainty;
    Finding::ok(
        CHECK,
        format!("this machine's clock keeps pace with the servers (within {within:.1?} over {period:?})"),
    )
}
