use crate::exit::Failure;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};

/// A certificate with its key, from files that are read again when they change, so that a certificate can be
/// replaced before it expires.
pub(super) struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    /// Times at which the files were modified when they were last read.
    modified: [Option<SystemTime>; 2],
    acceptor: TlsAcceptor,
}

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// `Usage` with the file and the reason.
    pub(super) fn read(chain: &Path, key: &Path) -> Result<Self, Failure> {
        let modified = [chain, key].map(modified);
        let acceptor = acceptor(chain, key)?;
        Ok(Self { chain: chain.to_owned(), key: key.to_owned(), modified, acceptor })
    }

    /// Returns the acceptor for the next connection.
    ///
    /// # Errors
    /// Why changed files cannot be used, once for each change. The last valid certificate stays in use.
    pub(super) fn acceptor(&mut self) -> (TlsAcceptor, Option<Failure>) {
        let modified = [&*self.chain, &*self.key].map(modified);
        let mut failure = None;
        if modified != self.modified {
            self.modified = modified;
            match acceptor(&self.chain, &self.key) {
                Ok(acceptor) => self.acceptor = acceptor,
                Err(error) => failure = Some(error),
            }
        }
        (self.acceptor.clone(), failure)
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn acceptor(chain: &Path, key: &Path) -> Result<TlsAcceptor, Failure> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&read(chain)?)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable("certificate", chain, error))?;
    if certificates.is_empty() {
        return Err(unusable("certificate", chain, "the file has no certificate in PEM"));
    }
    let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| unusable("key", key, error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| Failure::other(format!("TLS: {error}")))?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|error| unusable(&format!("certificate {chain:?} with key"), key, error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::usage(format!("cannot read {path:?}: {error}")))
}

fn unusable(what: &str, path: &Path, reason: impl Display) -> Failure {
    Failure::usage(format!("cannot use {what} {path:?}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    #[test]
    fn errors_name_the_file_and_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let pair = || generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let CertifiedKey { cert, signing_key } = pair();
        let (chain, key) = (write("cert", &cert.pem()), write("key", &signing_key.serialize_pem()));
        let other = write("other", &pair().signing_key.serialize_pem());
        let (empty, missing) = (write("empty", "nothing"), folder.path().join("missing"));
        assert!(Certificate::read(&chain, &key).is_ok());
        for (chain, key, file, reason) in [
            (&missing, &key, "missing", "No such file"),
            (&chain, &missing, "missing", "No such file"),
            (&empty, &key, "empty", "no certificate in PEM"),
            (&key, &key, "key", "no certificate in PEM"),
            (&chain, &empty, "empty", "no"),
            (&chain, &other, "other", "KeyMismatch"),
        ] {
            let text = Certificate::read(chain, key).map(|_| ()).unwrap_err().to_string();
            assert!(text.contains(&format!("{file}\"")) && text.contains(reason), "{text}");
        }
    }

    #[test]
    fn changed_files_are_read_again_and_broken_ones_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let (chain, key) = (folder.path().join("cert"), folder.path().join("key"));
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let write = |text: &str, seconds: u64| {
            fs::write(&chain, text).unwrap();
            let modified = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            fs::File::options().write(true).open(&chain).unwrap().set_modified(modified).unwrap();
        };
        fs::write(&key, signing_key.serialize_pem()).unwrap();
        write(&cert.pem(), 1);
        let mut certificate = Certificate::read(&chain, &key).unwrap();
        let config = |certificate: &mut Certificate| {
            let (acceptor, failure) = certificate.acceptor();
            (Arc::as_ptr(acceptor.config()), failure.is_some())
        };
        let (first, _) = config(&mut certificate);
        assert_eq!(config(&mut certificate), (first, false));
        write("half a certificate", 2);
        assert_eq!(config(&mut certificate), (first, true));
        assert_eq!(config(&mut certificate), (first, false));
        write(&cert.pem(), 3);
        let (second, has_failed) = config(&mut certificate);
        assert!(second != first && !has_failed);
    }
}
