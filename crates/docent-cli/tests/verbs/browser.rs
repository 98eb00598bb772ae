//! The least of a browser: requests over HTTP/1.1, with or without TLS, and replies with their headers.

use crate::docent_command::PATIENCE;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Any stream.
pub(crate) trait Link: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Link for T {}

/// A browser of one site.
#[derive(Clone)]
pub(crate) struct Browser {
    /// Host and port, to connect to and for the header `Host`.
    pub(crate) host: String,
    tls: Option<TlsConnector>,
}

/// A reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Browser {
    /// Returns a browser of the site at this address, such as `http://127.0.0.1:80/`.
    pub(crate) fn of(url: &str) -> Self {
        let host = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
        Self { host: host.unwrap_or_else(|| panic!("{url} must be of HTTP")).to_owned(), tls: None }
    }

    /// Like [`of`](Self::of), for a site with a certificate of this authority.
    pub(crate) fn secure(url: &str, authority: CertificateDer<'static>) -> Self {
        let host = url.strip_prefix("https://").and_then(|rest| rest.strip_suffix('/'));
        let mut roots = RootCertStore::empty();
        roots.add(authority).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let tls = TlsConnector::from(Arc::new(config.with_no_client_auth()));
        Self { host: host.unwrap_or_else(|| panic!("{url} must be of HTTPS")).to_owned(), tls: Some(tls) }
    }

    async fn connect(&self) -> io::Result<Box<dyn Link>> {
        let stream = TcpStream::connect(&self.host).await?;
        Ok(match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.connect(ServerName::try_from("127.0.0.1").unwrap(), stream).await?),
        })
    }

    /// Sends a request without body, and returns the open link. `headers` may have a host.
    pub(crate) async fn open(&self, path: &str, headers: &[&str]) -> io::Result<Box<dyn Link>> {
        self.send("GET", path, headers, "").await
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &str,
    ) -> io::Result<Box<dyn Link>> {
        let mut link = self.connect().await?;
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            request += &format!("Host: {}\r\n", self.host);
        }
        if method == "POST" {
            let form = "application/x-www-form-urlencoded";
            request += &format!("Content-Type: {form}\r\nContent-Length: {}\r\n", body.len());
        }
        headers.iter().for_each(|header| request += &format!("{header}\r\n"));
        link.write_all(format!("{request}\r\n{body}").as_bytes()).await?;
        Ok(link)
    }

    async fn exchange(&self, method: &str, path: &str, headers: &[&str], body: &str) -> io::Result<Reply> {
        let mut bytes = Vec::new();
        self.send(method, path, headers, body).await?.read_to_end(&mut bytes).await?;
        let text = String::from_utf8(bytes).map_err(io::Error::other)?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| io::Error::other(text.clone()))?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(head.to_owned()))?;
        Ok(Reply { status, head: head.to_owned(), body: body.to_owned() })
    }

    /// Returns the reply to a request, or the error of the link.
    pub(crate) async fn try_get(&self, path: &str) -> io::Result<Reply> {
        timeout(PATIENCE, self.exchange("GET", path, &[], "")).await.expect("the reply must arrive in time")
    }

    /// Returns the reply to a request. `headers` may have a host.
    pub(crate) async fn get(&self, path: &str, headers: &[&str]) -> Reply {
        let reply = timeout(PATIENCE, self.exchange("GET", path, headers, "")).await;
        reply.expect("the reply must arrive in time").unwrap()
    }

    /// Returns the reply to a form.
    pub(crate) async fn post(&self, path: &str, headers: &[&str], form: &str) -> Reply {
        let reply = timeout(PATIENCE, self.exchange("POST", path, headers, form)).await;
        reply.expect("the reply must arrive in time").unwrap()
    }
}

impl Reply {
    /// Returns the value of a header, or "".
    pub(crate) fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .next()
            .unwrap_or("")
    }

    /// Returns the cookie that the reply stores, as a header of requests.
    pub(crate) fn cookie(&self) -> String {
        format!("Cookie: {}", self.header("set-cookie").split(';').next().unwrap())
    }
}
