use super::finding::Finding;
use docent::client::Client;

const CHECK: &str = "dialect";

/// Names the operations that the servers are known not to support, and whether they restore sessions. Call it
/// after other checks, from which the client has learned.
pub(super) async fn check(client: &Client) -> Finding {
    let health = client.health();
    let missing = health.unsupported.join(", ");
    let without = match missing.is_empty() {
        true => "no missing operation was noticed".to_owned(),
        false => format!(
            "the servers do not support: {missing}; the client uses other operations if there are any"
        ),
    };
    if health.session_per_connection {
        let text = format!(
            "the servers are ClickHouse Keeper, which restores no sessions: each lost connection ends the session, \
             and every lock and leadership with it; {without}"
        );
        let remedy = "use ZooKeeper if guards must survive a lost connection";
        return Finding::warning(CHECK, text, remedy);
    }
    Finding::ok(CHECK, without)
}
