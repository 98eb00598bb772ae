use crate::shop::Meta;
use anyhow::{Context, bail};
use docent::{Instance, Service};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Calls the shops in turn, and calls another shop if one fails.
pub(crate) struct Caller {
    shops: Service<Meta>,
}

/// Answers of one round, by the shops' names, and the number of failed attempts.
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

    /// Sends `requests` requests, each of which has to be answered by a shop.
    pub(crate) async fn send(&self, requests: usize) -> anyhow::Result<Round> {
        let mut round = Round::default();
        while round.answers.len() < requests {
            // Counts as an in-flight request until it is dropped.
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
                bail!("too many requests failed: {round:?}");
            }
        }
        println!("  answers: {}", round.answers.join(" "));
        Ok(round)
    }
}

/// Sends a minimal request. A service would use an HTTP client here.
async fn get(shop: &Instance<Meta>) -> anyhow::Result<String> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let zone = &shop.payload.as_ref().context("the instance has no payload with its zone")?.zone;
    let authority = shop.authority().context("the instance has no address")?;
    let send = async {
        let mut link = TcpStream::connect(&authority).await?;
        let request = format!("GET /{zone} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n");
        link.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        link.read_to_string(&mut response).await?;
        Ok::<_, std::io::Error>(response)
    };
    let response = timeout(PATIENCE, send).await??;
    let (head, body) = response.split_once("\r\n\r\n").context("the response is not HTTP")?;
    if !head.starts_with("HTTP/1.1 200") {
        bail!("unexpected response {head:?}");
    }
    Ok(body.to_owned())
}
