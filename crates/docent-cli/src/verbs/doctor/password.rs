use super::finding::Finding;
use docent::client::Options;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const CHECK: &str = "password";

/// Permissions of group and others.
const OTHERS: u32 = 0o077;

/// Looks who beside this user can come by the password of the client. Nothing where it has none.
pub(super) fn check(options: &Options) -> Vec<Finding> {
    let Some(file) = &options.credentials_file else { return Vec::new() };
    let wire = options.tls_ca_file.is_none().then(|| {
        let text = "the password goes to the servers without TLS: whoever sees the wire can read it";
        Finding::warning(CHECK, text, "give --tls-ca, and the port of secureClientPort in zoo.cfg")
    });
    let found: Vec<_> = [kept(file), wire].into_iter().flatten().collect();
    match found.is_empty() {
        true => vec![Finding::ok(CHECK, "the password is kept from others, in its file and on the wire")],
        false => found,
    }
}

/// Tells when others than the owner may use the file.
fn kept(file: &Path) -> Option<Finding> {
    let mode = fs::metadata(file).ok()?.permissions().mode() & 0o777;
    (mode & OTHERS != 0).then(|| {
        let text = format!("others than its owner may use {}: its mode is {mode:03o}", file.display());
        Finding::warning(CHECK, text, format!("chmod 600 {}", file.display()))
    })
}
