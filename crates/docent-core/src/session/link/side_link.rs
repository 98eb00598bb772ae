use crate::session::link::transport::Io;
use crate::session::sasl::{Sasl, SaslError, SaslExchange, SaslStep};
use crate::session::{Credentials, SessionSettings};
use bytes::{Bytes, BytesMut};
use docent_proto::{
    Code, ConnectRequest, ConnectResponse, DecodeError, Frames, OpCode, Reader, Record, ReplyHeader, Request,
    RequestFrame, Response, write_frame, xid,
};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Largest accepted frame in bytes: a connect response, or a short reply.
const FRAME_LIMIT: usize = 4 * 1024;

/// A separate link for a few sequential requests, beside the client's session.
pub(super) struct SideLink {
    io: Box<dyn Io>,
    received: BytesMut,
}

impl SideLink {
    pub(super) fn new(io: Box<dyn Io>) -> Self {
        Self { io, received: BytesMut::new() }
    }

    /// Opens or resumes a session. Credentials and a request are sent in the same write; their
    /// [replies](Self::reply) follow.
    pub(super) async fn connect_and_send(
        &mut self,
        connect: &ConnectRequest,
        credentials: impl Iterator<Item = Request>,
        request: &Request,
    ) -> io::Result<ConnectResponse> {
        let mut out = Vec::new();
        write_frame(&mut out, |out| connect.write(out));
        append(&mut out, credentials, request);
        self.send(&out).await?;
        ConnectResponse::decode(self.frame().await?).map_err(invalid)
    }

    /// Opens or resumes a session, and sends the first `token` of SASL in the same write. If the session is
    /// attached, [`authenticate_and_send`](Self::authenticate_and_send) continues.
    pub(super) async fn connect_with_sasl(
        &mut self,
        connect: &ConnectRequest,
        token: Bytes,
    ) -> io::Result<ConnectResponse> {
        let mut out = Vec::new();
        write_frame(&mut out, |out| connect.write(out));
        RequestFrame::encode_parts(1, &Request::Sasl { token: Some(token) }, &mut out);
        self.send(&out).await?;
        ConnectResponse::decode(self.frame().await?).map_err(invalid)
    }

    /// Completes the authentication, and then sends credentials and a request in one write; their
    /// [replies](Self::reply) follow.
    ///
    /// # Errors
    /// An error of the kind `PermissionDenied` if the server does not accept `sasl`.
    pub(super) async fn authenticate_and_send(
        &mut self,
        sasl: &Sasl,
        mut exchange: SaslExchange,
        credentials: impl Iterator<Item = Request>,
        request: &Request,
    ) -> io::Result<()> {
        let mut out = Vec::new();
        loop {
            let token = self.token(&exchange).await?;
            let SaslStep::Send(token) = exchange.step(sasl, token.as_deref()).map_err(failed)? else {
                break;
            };
            out.clear();
            RequestFrame::encode_parts(1, &Request::Sasl { token: Some(token) }, &mut out);
            self.send(&out).await?;
        }
        out.clear();
        append(&mut out, credentials, request);
        self.send(&out).await
    }

    /// Returns the server's next token of SASL.
    async fn token(&mut self, exchange: &SaslExchange) -> io::Result<Option<Bytes>> {
        let mut reader = Reader::new(self.frame().await?);
        match ReplyHeader::read(&mut reader).map_err(invalid)?.code {
            Code::OK => {}
            _ => return Err(failed(exchange.refused())),
        }
        match Response::decode(OpCode::Sasl, reader.into_rest()).map_err(invalid)? {
            Response::Sasl { token } => Ok(token),
            _ => Ok(None),
        }
    }

    pub(super) async fn call(&mut self, request: &Request) -> io::Result<ReplyHeader> {
        let mut out = Vec::new();
        RequestFrame::encode_parts(1, request, &mut out);
        self.send(&out).await?;
        self.reply().await
    }

    pub(super) async fn reply(&mut self) -> io::Result<ReplyHeader> {
        ReplyHeader::read(&mut Reader::new(self.frame().await?)).map_err(invalid)
    }

    /// Writes and flushes `out`, because a stream may buffer bytes until it is flushed.
    async fn send(&mut self, out: &[u8]) -> io::Result<()> {
        self.io.write_all(out).await?;
        self.io.flush().await
    }

    async fn frame(&mut self) -> io::Result<Bytes> {
        let frames = Frames::new(FRAME_LIMIT);
        loop {
            if let Some(frame) = frames.next(&mut self.received).map_err(invalid)? {
                return Ok(frame);
            }
            if self.io.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Asks a server for its newest transaction, using a temporary session that is closed again. Without
/// the identities in `settings` the server may reject every request.
///
/// This shows whether the ensemble was restored from an older snapshot. Its servers then permanently refuse
/// a client that has seen newer transactions: they close the link without a reply. A session that claims to
/// have seen nothing reveals the difference.
pub(in crate::session) async fn newest_transaction(
    io: Box<dyn Io>,
    host: &str,
    timeout: Duration,
    settings: &SessionSettings,
) -> io::Result<i64> {
    let mut side_link = SideLink::new(io);
    let connect = ConnectRequest::new_session(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
    // A server that merely lags behind its leader must not be taken for a restored one.
    let sync = Request::Sync { path: "/".to_owned() };
    let credentials = settings.credentials.iter().map(Credentials::request);
    match &settings.sasl {
        Some(sasl) => {
            let begun = SaslExchange::begin(sasl, host, timeout).await;
            let (exchange, token) = begun.map_err(io::Error::other)?;
            let connected = side_link.connect_with_sasl(&connect, token).await?;
            if connected.timeout_ms <= 0 {
                return Err(io::Error::other("the server opened no session"));
            }
            side_link.authenticate_and_send(sasl, exchange, credentials, &sync).await?;
        }
        None => drop(side_link.connect_and_send(&connect, credentials, &sync).await?),
    }
    while granted(side_link.reply().await?)?.xid == xid::AUTH {}
    let newest = granted(side_link.call(&Request::Exists { path: "/".to_owned(), watch: false }).await?)?;
    side_link.call(&Request::CloseSession).await?;
    Ok(newest.zxid)
}

/// A refusal carries no information about transactions.
fn granted(reply: ReplyHeader) -> io::Result<ReplyHeader> {
    match reply.code {
        Code::OK => Ok(reply),
        code => Err(io::Error::other(code.to_string())),
    }
}

fn append(out: &mut Vec<u8>, credentials: impl Iterator<Item = Request>, request: &Request) {
    for credentials in credentials {
        RequestFrame::encode_parts(xid::AUTH, &credentials, out);
    }
    RequestFrame::encode_parts(1, request, out);
}

/// Returns the error of an authentication. A server that does not prove its identity refuses nothing.
fn failed(error: SaslError) -> io::Error {
    match error.is_refusal() {
        true => io::Error::new(io::ErrorKind::PermissionDenied, error),
        false => io::Error::other(error),
    }
}

fn invalid(error: DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
