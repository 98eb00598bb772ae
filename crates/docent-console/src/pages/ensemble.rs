use crate::world::{World, shortened};
use docent::Client;
use docent::inspect::{ServerState, Vitals, printable};
use maud::{Markup, html};
use std::fmt::Display;

/// Names of the figures that a server reports.
const FIGURES: [&str; 6] = ["Mode", "Version", "Zxid", "Latency", "Connections", "Outstanding"];

/// Draws the servers in the order of the connect string, each with its state and figures.
pub(super) fn draw(world: &World, client: &Client) -> Markup {
    html! {
        section #ensemble .block {
            h2 { "Ensemble" }
            table.list {
                thead { tr {
                    @for column in ["Server", "State"].iter().chain(&FIGURES) { th scope="col" { (column) } }
                } }
                tbody { @for (server, vitals) in world.servers(client.servers()) { (row(&server, vitals.as_deref())) } }
            }
        }
    }
}

fn row(server: &str, vitals: Option<&Vitals>) -> Markup {
    let figures = vitals.map(figures).unwrap_or_default();
    let (badge, is_good, text) = state(vitals);
    html! {
        tr {
            th scope="row" title=(server) { (printable(server)) }
            td data-label="State" title=(text) {
                @if let Some(badge) = badge { span.badge.is-good[is_good].is-bad[!is_good] { (badge) } " " }
                (text)
            }
            @for (name, figure) in FIGURES.iter().zip(&figures) { td data-label=(name) title=(figure) { (figure) } }
        }
    }
}

/// Returns the badge of a server and whether it is a good one, and a text.
fn state(vitals: Option<&Vitals>) -> (Option<&'static str>, bool, String) {
    let Some(vitals) = vitals else { return (None, true, "not queried yet".to_owned()) };
    let reason = || shortened(&printable(vitals.reason.as_deref().unwrap_or_default()));
    match vitals.state {
        _ if vitals.lacks_quorum() => (Some("no quorum"), false, String::new()),
        ServerState::Serving => (Some("serving"), true, String::new()),
        ServerState::WordsOff => (None, true, "does not report: four-letter words are disabled".to_owned()),
        ServerState::Tls => (None, true, "does not report: the port uses TLS".to_owned()),
        ServerState::Foreign => (Some("no ZooKeeper"), false, reason()),
        _ => (Some("down"), false, reason()),
    }
}

fn figures(vitals: &Vitals) -> [String; FIGURES.len()] {
    let latency = vitals.latency_avg_ms.map(|latency| format!("{latency} ms"));
    [
        figure(vitals.mode.as_ref()),
        figure(vitals.version.as_ref()),
        figure(vitals.zxid.as_ref()),
        figure(latency),
        figure(vitals.connections),
        figure(vitals.outstanding),
    ]
}

fn figure(value: Option<impl Display>) -> String {
    value.map(|value| shortened(&printable(value.to_string()))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use docent::transport::{ServerAddress, TcpTransport};
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    /// Draws the row of a server that answers with this text.
    async fn row_of(answer: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = ServerAddress::all_of(&listener.local_addr().unwrap().to_string()).unwrap().remove(0);
        let answering = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                // The other side may have closed the connection.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        };
        let vitals = tokio::select! {
            vitals = Vitals::query(&TcpTransport, &server, Duration::from_secs(30)) => vitals,
            () = answering => unreachable!("the loop has no end"),
        };
        row("zk1:2181", Some(&vitals)).into_string()
    }

    #[tokio::test]
    async fn a_server_that_does_not_report_is_described_in_words() {
        for (answer, words) in [
            (
                "srvr is not executed because it is not in the whitelist.\n",
                "does not report: four-letter words are disabled",
            ),
            ("\x15\x03", "does not report: the port uses TLS"),
            ("This ZooKeeper instance is not currently serving requests\n", "no quorum"),
            ("HTTP/1.1 400 Bad Request\r\n", "HTTP/1.1 400 Bad Request"),
        ] {
            let row = row_of(answer).await;
            assert!(row.contains(words), "{words}: {row}");
        }
        assert!(row("zk1:2181", None).into_string().contains("not queried yet"));
    }

    #[tokio::test]
    async fn figures_of_a_server_are_text() {
        let row = row_of(
            "Zookeeper version: 3.8.4\nMode: <b>leader</b>\nConnections: 3\nLatency min/avg/max: 0/0.5/9\n",
        )
        .await;
        assert!(
            row.contains("serving") && row.contains("0.5 ms") && row.contains("&lt;b&gt;leader"),
            "{row}"
        );
    }
}
