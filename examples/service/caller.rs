use crate::shop::Meta;
use anyhow::{Context, bail};
use docent::{Instance, Service};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Asks the shops, a different one each time, and tries another when one fails.
pub(crate) struct Caller {
    shops: Service<Meta>,
}

/// Answers of one round, by the shops' names, and the number of failed tries.
#[derive(Debug, Default)]
pub(crate) struct Round {
    answers: Vec<String>,
    pub(crate) failures: usize,
}

impl Round {
    pub(crate) fn answered(&self, name: &str) -> usize {
        self.answers.iter().filter(|answer| *answer == name).count()
    }
}

impl Caller {
    pub(crate) fn new(shops: Service<Meta>) -> Self {
        Self { shops }
    }

    /// Makes so many requests, each of which has to be answered by somebody.
    pub(crate) async fn ask(&self, requests: usize) -> anyhow::Result<Round> {
        let mut round = Round::default();
        while round.answers.len() < requests {
            // Counts as in flight until it is dropped.
            let shop = self.shops.pick()?;
            match get(&shop).await {
                Ok(answer) => {
                    shop.succeeded();
                    round.answers.push(answer);
                }
                Err(error) => {
                    println!("  {} does not answer: {error:#}", shop.id);
                    round.failures += 1;
                    shop.failed();
                }
            }
            if round.failures > requests {
                bail!("hardly anybody answers: {round:?}");
            }
        }
        println!("  answers: {}", round.answers.join(" "));
        Ok(round)
    }
}

/// A request in the fewest words. A service would use an HTTP client here.
async fn get(shop: &Instance<Meta>) -> anyhow::Result<String> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let zone = &shop.payload.as_ref().context("it does not say where it is")?.zone;
    let authority = shop.authority().context("it has no address")?;
    let ask = async {
        let mut link = TcpStream::connect(&authority).await?;
        let request = format!("GET /{zone} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n");
        link.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        link.read_to_string(&mut response).await?;
        Ok::<_, std::io::Error>(response)
    };
    let response = timeout(PATIENCE, ask).await??;
    let (head, body) = response.split_once("\r\n\r\n").context("it is no HTTP")?;
    if !head.starts_with("HTTP/1.1 200") {
        bail!("it says {head:?}");
    }
    Ok(body.to_owned())
}
