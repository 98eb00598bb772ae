use super::control::{Control, fresh};
use super::link::Link;
use super::record::Record;
use crate::script::decode::Decoder;
use crate::script::encode::{self, Names};
use crate::script::piece::{Line, render};
use crate::script::{Action, Operation, Step};
use anyhow::{Context, Result};
use bytes::{Buf, Bytes};
use docent_proto::{ConnectRequest, ConnectResponse};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// Timeout of sessions, in milliseconds: longer than anything that a script waits for.
const TIMEOUT: i32 = 60_000;
/// Timeout of a session that is to expire, in milliseconds.
const SHORT: i32 = 400;
const PING: i32 = 11;
const PING_XID: i32 = -2;
const EVENT_XID: i32 = -1;
/// Code of the reply to an unknown operation.
const UNIMPLEMENTED: i32 = -6;

/// Runs a script on a server, with all of its nodes below `root`, which must not exist yet.
///
/// # Errors
/// Returns an error if the server is unreachable or does not reply. The error means nothing for the script.
pub async fn run(script: &[Step], address: SocketAddr, root: &str) -> Result<Record> {
    let control = Control::open(address, root).await?;
    let mut runner = Runner { script, address, root, control, sessions: BTreeMap::new(), lines: Vec::new() };
    for (index, step) in script.iter().enumerate() {
        runner.step(index, step).await.with_context(|| format!("step {index}: {step}"))?;
    }
    runner.finish().await
}

struct Runner<'a> {
    script: &'a [Step],
    address: SocketAddr,
    root: &'a str,
    control: Control,
    sessions: BTreeMap<usize, Session>,
    lines: Vec<Line>,
}

struct Session {
    id: i64,
    password: Bytes,
    link: Option<Link>,
    /// Latest transaction in the header of a reply.
    seen: i64,
    /// Whether the server has announced that it closes the link.
    closing: bool,
}

impl Runner<'_> {
    async fn step(&mut self, index: usize, step: &Step) -> Result<()> {
        self.push_line(&format!("> {step}"));
        let first = self.lines.len();
        let number = step.session;
        // Otherwise the replies to different sessions would arrive in no defined order.
        let others: Vec<usize> = self.sessions.keys().copied().filter(|other| *other != number).collect();
        for other in others {
            self.drain(other).await?;
        }
        if !self.sessions.contains_key(&number) {
            self.connect(number, &fresh(TIMEOUT)).await?;
        }
        match &step.action {
            Action::Request(operation, fields) => {
                let seen = self.sessions[&number].seen;
                let mut body = Vec::new();
                encode::body(operation, fields, Names { root: self.root, seen }, &mut body)?;
                self.send(number, index, operation.xid, operation.code, &body).await;
            }
            Action::Raw(code, body) => self.send(number, index, None, *code, body).await,
            Action::Drop => self.detach(number).await?,
            Action::Attach(timeout_ms) => self.attach(number, *timeout_ms).await?,
            Action::Expire => self.expire(number).await?,
            Action::AwaitDeleted(path) => {
                self.drain(number).await?;
                let is_deleted = self.control.is_deleted(path).await?;
                self.push_line(&format!("  {}", if is_deleted { "gone" } else { "still there" }));
            }
        }
        if !step.at_once {
            self.settle(step).await?;
        }
        if ends(&step.action) {
            // One transaction deletes the session's nodes, in no defined order.
            self.lines[first..].sort_by_key(Line::beginning);
        }
        Ok(())
    }

    /// Waits for all replies, and for all events of the steps so far.
    async fn settle(&mut self, step: &Step) -> Result<()> {
        self.drain(step.session).await?;
        let reads = matches!(&step.action, Action::Request(op, _) if !op.writes && op.xid.is_none());
        if reads { Ok(()) } else { self.barrier().await }
    }

    /// Sends a ping on each link, and waits for the replies. Everything that the server had to send before
    /// has then arrived.
    async fn barrier(&mut self) -> Result<()> {
        for session in self.sessions.values_mut().filter(|session| !session.closing) {
            if let Some(link) = &mut session.link {
                link.send(usize::MAX, Some(PING_XID), PING, &[]).await;
            }
        }
        let all: Vec<usize> = self.sessions.keys().copied().collect();
        for number in all {
            self.drain(number).await?;
        }
        Ok(())
    }

    async fn send(&mut self, number: usize, step: usize, xid: Option<i32>, code: i32, body: &[u8]) {
        match self.sessions.get_mut(&number).and_then(|session| session.link.as_mut()) {
            Some(link) => link.send(step, xid, code, body).await,
            None => self.push_line("  no link"),
        }
    }

    /// Reads until every request of a session has its reply, or until the link is closed if the server has
    /// announced that.
    async fn drain(&mut self, number: usize) -> Result<()> {
        loop {
            let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
            let Some(link) = &mut session.link else { return Ok(()) };
            if link.waiting.is_empty() && !session.closing {
                return Ok(());
            }
            match link.frame().await? {
                Some(frame) => self.receive(number, frame)?,
                None => {
                    session.link = None;
                    session.closing = false;
                    self.push_line(&format!("  {number} closed"));
                }
            }
        }
    }

    fn receive(&mut self, number: usize, mut frame: Bytes) -> Result<()> {
        anyhow::ensure!(frame.len() >= 16, "reply without a header");
        let (xid, zxid, code) = (frame.get_i32(), frame.get_i64(), frame.get_i32());
        let mut line = Line::default();
        line.push(&format!("  {number} "));
        if xid == EVENT_XID {
            event(self.root, &frame, zxid, code, &mut line);
            self.lines.push(line);
            return Ok(());
        }
        let session = self.sessions.get_mut(&number).context("a session that reads must be open")?;
        session.seen = session.seen.max(zxid);
        let waiting = session.link.as_mut().map(|link| &mut link.waiting).context("an open link")?;
        let at = waiting.iter().position(|(request, _)| *request == xid);
        let step = at.and_then(|at| waiting.remove(at)).map(|(_, step)| step);
        let action = step.and_then(|step| self.script.get(step)).map(|step| &step.action);
        let operation = match action {
            Some(Action::Request(operation, _)) => Some(*operation),
            None if step.is_some() && code == 0 => return Ok(()),
            _ => None,
        };
        session.closing |= action.is_some_and(|action| closes(action, code));
        line.push(&format!("{} {code} ", operation.map_or("?", |operation| operation.name)));
        match operation {
            Some(operation) if operation.writes && code == 0 => line.zxid(zxid),
            _ => line.seen(zxid),
        }
        let mut decoder = Decoder { bytes: &frame, root: self.root, line: &mut line };
        match operation {
            Some(operation) if code == 0 => decoder.body(operation),
            _ => decoder.rest(),
        }
        self.lines.push(line);
        Ok(())
    }

    async fn connect(&mut self, number: usize, connect: &ConnectRequest) -> Result<()> {
        let (link, response) = Link::open(self.address, connect).await?;
        let text = match &response {
            None => format!("  {number} refused"),
            Some(ConnectResponse { session_id: 0, timeout_ms, read_only, .. }) => {
                format!("  {number} over {timeout_ms} {read_only:?}")
            }
            Some(granted) => format!("  {number} attached {} {:?}", granted.timeout_ms, granted.read_only),
        };
        self.push_line(&text);
        let lives = response.filter(|response| response.session_id != 0);
        let session = self.sessions.entry(number).or_insert_with(|| Session {
            id: 0,
            password: Bytes::new(),
            link: None,
            seen: 0,
            closing: false,
        });
        if let Some(granted) = lives {
            (session.id, session.password, session.link) = (granted.session_id, granted.password, Some(link));
        }
        Ok(())
    }

    async fn detach(&mut self, number: usize) -> Result<()> {
        self.drain(number).await?;
        if let Some(session) = self.sessions.get_mut(&number) {
            session.link = None;
        }
        Ok(())
    }

    async fn attach(&mut self, number: usize, timeout_ms: i32) -> Result<()> {
        self.detach(number).await?;
        let session = &self.sessions[&number];
        let connect = ConnectRequest {
            last_zxid_seen: session.seen,
            timeout_ms,
            session_id: session.id,
            password: session.password.clone(),
            read_only: Some(false),
        };
        self.connect(number, &connect).await
    }

    /// Lets the session expire. Creates an ephemeral node first, whose deletion shows the expiry. The short
    /// timeout is requested last, because no step may wait for anything under it.
    async fn expire(&mut self, number: usize) -> Result<()> {
        self.attach(number, TIMEOUT).await?;
        let marker = format!("={}~{number}", self.root);
        let create = Operation::find("create").context("the operation create must exist")?;
        let fields = [marker.as_str(), "null", "open", "1"].map(str::to_owned);
        let mut body = Vec::new();
        encode::body(create, &fields, Names { root: self.root, seen: 0 }, &mut body)?;
        self.send(number, usize::MAX, None, create.code, &body).await;
        self.attach(number, SHORT).await?;
        self.detach(number).await?;
        self.control.await_deleted(&marker).await
    }

    async fn finish(mut self) -> Result<Record> {
        self.push_line("> end");
        self.barrier().await?;
        let paths = self.control.survey(&mut self.lines).await?;
        self.push_line("> everything is deleted");
        self.control.tear_down(&paths).await?;
        self.barrier().await?;
        let numbers: HashMap<i64, usize> =
            self.sessions.iter().map(|(number, session)| (session.id, *number)).collect();
        let record = Record::new(render(&self.lines, &numbers));
        for session in self.sessions.values_mut() {
            if let Some(link) = &mut session.link {
                link.send(0, None, -11, &[]).await;
                while link.frame().await?.is_some() {}
            }
        }
        self.control.close().await?;
        Ok(record)
    }

    fn push_line(&mut self, text: &str) {
        let mut line = Line::default();
        line.push(text);
        self.lines.push(line);
    }
}

/// Returns true if the session ends with this action.
fn ends(action: &Action) -> bool {
    match action {
        Action::Request(operation, _) => operation.name == "close",
        other => *other == Action::Expire,
    }
}

/// Returns true if the server closes the link after this reply.
fn closes(action: &Action, code: i32) -> bool {
    match action {
        Action::Request(operation, _) => operation.name == "close" || (operation.name == "auth" && code != 0),
        Action::Raw(..) => code == UNIMPLEMENTED,
        _ => false,
    }
}

fn event(root: &str, frame: &[u8], zxid: i64, code: i32, line: &mut Line) {
    let mut decoder = Decoder { bytes: frame, root, line: &mut Line::default() };
    let parts = (decoder.i32().unwrap_or(0), decoder.i32().unwrap_or(0), decoder.path().unwrap_or_default());
    let (kind, state, path) = parts;
    let name = match kind {
        1 => "created",
        2 => "deleted",
        3 => "changed",
        4 => "children",
        5 => "data-watch-removed",
        6 => "child-watch-removed",
        7 => "persistent-watch-removed",
        _ => "unknown",
    };
    let usual = (zxid, code, state) == (-1, 0, 3);
    let header = if usual { String::new() } else { format!(" {zxid} {code} {state}") };
    line.push(&format!("! {name} {path}{header}"));
}
