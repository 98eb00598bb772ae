use super::link::Link;
use crate::script::Operation;
use crate::script::decode::Decoder;
use crate::script::encode::{self, Names};
use crate::script::piece::Line;
use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, Bytes};
use docent_proto::ConnectRequest;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

const OPEN: &str = "31:world:anyone";
/// Time after which a node that still exists is not deleted any more.
const REAPED: Duration = Duration::from_secs(2);
const NO_NODE: i32 = -101;

/// A session of a run that does not belong to the script. It creates the root, waits for deletions, and reads
/// everything that is left at the end.
#[derive(Debug)]
pub(super) struct Control {
    link: Link,
    root: String,
}

/// A reply of a server: its code and body.
struct Reply {
    code: i32,
    body: Bytes,
}

/// The handshake of a new session.
pub(super) fn fresh(timeout_ms: i32) -> ConnectRequest {
    ConnectRequest::new_session(timeout_ms)
}

impl Control {
    /// Opens a session and creates the root.
    pub(super) async fn open(address: SocketAddr, root: &str) -> Result<Self> {
        let (link, response) = Link::open(address, &fresh(60_000)).await?;
        ensure!(response.is_some(), "the server refused the session");
        let mut control = Self { link, root: root.to_owned() };
        let created = control.request("create", &["/", "null", OPEN, "0"]).await?;
        ensure!(created.code == 0, "cannot create the root: code {}", created.code);
        Ok(control)
    }

    /// Waits until a node is deleted. Returns false if the node stays.
    pub(super) async fn is_deleted(&mut self, path: &str) -> Result<bool> {
        if self.request("exists", &[path, "1"]).await?.code == NO_NODE {
            return Ok(true);
        }
        match timeout(REAPED, self.link.frame()).await {
            Ok(frame) => frame?.context("the link of the control session was closed").map(|_| true),
            Err(_) => Ok(false),
        }
    }

    /// Waits until a node is deleted.
    pub(super) async fn await_deleted(&mut self, path: &str) -> Result<()> {
        if self.request("exists", &[path, "1"]).await?.code != NO_NODE {
            self.link.frame().await?.context("the link of the control session was closed")?;
        }
        Ok(())
    }

    /// Records every node below the root, with everything that the server reports about it. Returns the
    /// paths.
    pub(super) async fn survey(&mut self, lines: &mut Vec<Line>) -> Result<Vec<String>> {
        let mut all = Vec::new();
        let mut level = vec!["/".to_owned()];
        while !level.is_empty() {
            let mut requests = Vec::new();
            for path in &level {
                requests.extend([
                    ("get", vec![path.as_str(), "0"]),
                    ("get-acl", vec![path]),
                    ("children", vec![path, "0"]),
                ]);
            }
            let replies = self.request_all(&requests).await?;
            let mut next = Vec::new();
            for (path, replies) in level.iter().zip(replies.chunks(3)) {
                lines.push(self.describe(path, replies));
                let base = if path == "/" { "" } else { path };
                next.extend(names(&replies[2])?.into_iter().map(|name| format!("{base}/{name}")));
            }
            next.sort();
            all.append(&mut level);
            level = next;
        }
        Ok(all)
    }

    /// Sets the data of all nodes and then deletes them, as far as their access control lists permit, which
    /// fires the remaining watches. The server may delete a container first, but only after its children.
    pub(super) async fn tear_down(&mut self, paths: &[String]) -> Result<()> {
        let mut sorted: Vec<&str> = paths.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        let sets = sorted.iter().map(|path| ("set", vec![*path, "end", "-1"]));
        let deletes = sorted.iter().rev().map(|path| ("delete", vec![*path, "-1"]));
        let requests: Vec<_> = sets.chain(deletes).collect();
        self.request_all(&requests).await.map(|_| ())
    }

    fn describe(&self, path: &str, replies: &[Reply]) -> Line {
        let mut line = Line::default();
        line.push(&format!("= {path}"));
        for (name, reply) in ["get", "get-acl"].into_iter().zip(replies) {
            match Operation::find(name) {
                Some(operation) if reply.code == 0 => {
                    Decoder { bytes: &reply.body, root: &self.root, line: &mut line }.body(operation);
                }
                _ => line.push(&format!(" {}", reply.code)),
            }
        }
        line
    }

    /// Ends the session.
    pub(super) async fn close(mut self) -> Result<()> {
        self.request("close", &[]).await.map(|_| ())
    }

    async fn request(&mut self, name: &str, fields: &[&str]) -> Result<Reply> {
        let mut replies = self.request_all(&[(name, fields.to_vec())]).await?;
        replies.pop().context("one request must have one reply")
    }

    async fn request_all(&mut self, requests: &[(&str, Vec<&str>)]) -> Result<Vec<Reply>> {
        for (name, fields) in requests {
            let operation = Operation::find(name).context("no such operation")?;
            let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
            let mut body = Vec::new();
            encode::body(operation, &fields, Names { root: &self.root, seen: 0 }, &mut body)?;
            self.link.send(0, operation.xid, operation.code, &body).await;
        }
        self.link.waiting.clear();
        let mut replies = Vec::with_capacity(requests.len());
        while replies.len() < requests.len() {
            let Some(mut body) = self.link.frame().await? else {
                bail!("the link of the control session was closed")
            };
            let (xid, _zxid, code) = (body.get_i32(), body.get_i64(), body.get_i32());
            // An event of a watch that no step waits for any more.
            if xid != -1 {
                replies.push(Reply { code, body });
            }
        }
        Ok(replies)
    }
}

fn names(reply: &Reply) -> Result<Vec<String>> {
    if reply.code != 0 {
        return Ok(Vec::new());
    }
    let mut line = Line::default();
    let mut decoder = Decoder { bytes: &reply.body, root: "", line: &mut line };
    let count = decoder.i32()?;
    (0..count).map(|_| decoder.path()).collect()
}
