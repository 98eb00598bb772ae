use docent_core::{ServerAddress, Transport};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Maximum number of bytes read of an answer: `srvr` and `conf` return a few hundred.
const LONGEST_ANSWER: u64 = 16 * 1024;

/// An address that accepted no connection, and the reason.
pub type Missed = (SocketAddr, io::Error);

/// Sends `bytes` over a new connection and reads the answer, at most 16 KiB, until the other side closes the
/// connection. Connecting takes at most `patience`, and so does the answer: after that, the bytes received so
/// far are the answer.
///
/// # Errors
/// The error of connecting; `TimedOut` if connecting takes longer than `patience`.
///
/// # Cancel safety
/// This method is cancel safe.
pub async fn exchange(
    transport: &dyn Transport,
    server: &ServerAddress,
    address: SocketAddr,
    bytes: &[u8],
    patience: Duration,
) -> io::Result<Vec<u8>> {
    let mut stream = timeout(patience, transport.dial(server, address)).await??;
    let mut answer = Vec::new();
    let talk = async {
        stream.write_all(bytes).await?;
        (&mut stream).take(LONGEST_ANSWER).read_to_end(&mut answer).await
    };
    // A reset or silence ends the answer; the bytes received before that still count.
    let _ = timeout(patience, talk).await;
    Ok(answer)
}

/// Like [`exchange`], with the first of `addresses` that accepts a connection, as a client does. Returns that
/// address, the answer, and the addresses that failed before.
///
/// # Errors
/// The errors of all addresses, if none accepts a connection.
///
/// # Cancel safety
/// This method is cancel safe.
pub async fn exchange_any(
    transport: &dyn Transport,
    server: &ServerAddress,
    addresses: &[SocketAddr],
    bytes: &[u8],
    patience: Duration,
) -> Result<(SocketAddr, Vec<u8>, Vec<Missed>), Vec<Missed>> {
    let mut missed = Vec::new();
    for address in addresses {
        match exchange(transport, server, *address, bytes, patience).await {
            Ok(answer) => return Ok((*address, answer, missed)),
            Err(error) => missed.push((*address, error)),
        }
    }
    Err(missed)
}

/// Returns true if the server at `address` answers a TLS hello as a TLS server does, within `patience`.
///
/// # Cancel safety
/// This method is cancel safe.
pub async fn talks_tls(
    transport: &dyn Transport,
    server: &ServerAddress,
    address: SocketAddr,
    patience: Duration,
) -> bool {
    let mut start = [0; 2];
    let talk = async {
        let mut stream = transport.dial(server, address).await?;
        stream.write_all(&CLIENT_HELLO).await?;
        stream.read_exact(&mut start).await
    };
    // The first byte is the record type, a handshake or an alert; the second is the major version.
    matches!(timeout(patience, talk).await, Ok(Ok(_))) && matches!(start, [0x15 | 0x16, 0x03])
}

/// A TLS 1.2 hello with three common cipher suites. No handshake follows: the first bytes of the reply show
/// whether the port uses TLS.
const CLIENT_HELLO: [u8; 78] = [
    0x16, 0x03, 0x01, 0x00, 0x49, // A record of 73 bytes,
    0x01, 0x00, 0x00, 0x45, // with a client hello of 69,
    0x03, 0x03, // of TLS 1.2,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0,    // its nonce,
    0x00, // no session to resume,
    0x00, 0x06, 0xc0, 0x2b, 0xc0, 0x2f, 0x00, 0x9c, // cipher suites with ECDSA, RSA, and RSA alone,
    0x01, 0x00, // no compression,
    0x00, 0x16, // and extensions:
    0x00, 0x0a, 0x00, 0x06, 0x00, 0x04, 0x00, 0x1d, 0x00, 0x17, // curves x25519 and secp256r1,
    0x00, 0x0d, 0x00, 0x08, 0x00, 0x06, 0x04, 0x03, 0x08, 0x04, 0x04, 0x01, // signatures with SHA-256.
];

#[cfg(test)]
mod tests {
    use super::*;
    use docent_core::TcpTransport;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn the_first_address_that_accepts_a_connection_is_queried() {
        let bind = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
        let up = bind().await;
        let address = up.local_addr().unwrap();
        // The listener is closed immediately.
        let down = bind().await.local_addr().unwrap();
        let serve = async {
            let (mut stream, _) = up.accept().await.unwrap();
            stream.write_all(b"imok").await.unwrap();
        };
        let server = ServerAddress::all_of("zk1:2181").unwrap().remove(0);
        let patience = Duration::from_secs(30);
        let both = [down, address];
        let (result, ()) = tokio::join!(exchange_any(&TcpTransport, &server, &both, b"", patience), serve);
        let (at, answer, missed) = result.unwrap();
        assert_eq!((at, &*answer, missed.len(), missed[0].0), (address, &b"imok"[..], 1, down));
        let missed = exchange_any(&TcpTransport, &server, &[down], b"", patience).await.unwrap_err();
        assert_eq!(missed[0].1.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn the_lengths_in_the_client_hello_match_its_parts() {
        let u16_at =
            |place: usize| usize::from(u16::from_be_bytes([CLIENT_HELLO[place], CLIENT_HELLO[place + 1]]));
        assert_eq!(u16_at(3), CLIENT_HELLO.len() - 5, "the record");
        assert_eq!(u16_at(7), CLIENT_HELLO.len() - 9, "the hello");
        let suites = 9 + 2 + 32 + 1;
        let extensions = suites + 2 + u16_at(suites) + 2;
        assert_eq!(u16_at(extensions), CLIENT_HELLO.len() - extensions - 2, "the extensions");
    }
}
