use super::finding::Finding;
use docent::client::Options;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const CHECK: &str = "password";

/// Permissions of group and others.
const GROUP_AND_OTHERS: u32 = 0o077;

/// Checks who else can read the client's password. Returns nothing if the client has none.
pub(super) fn check(options: &Options) -> Vec<Finding> {
    let files = [&options.credentials_file, &options.sasl_credentials_file].map(Option::as_deref);
    if files == [None, None] {
        return Vec::new();
    }
    // SASL does not send the password.
    let is_sent = options.credentials_file.is_some() && options.tls_ca_file.is_none();
    let wire = is_sent.then(|| {
        let text = "the password is sent to the servers without TLS: others on the network can read it";
        Finding::warning(CHECK, text, "give --tls-ca, and the port of secureClientPort in zoo.cfg")
    });
    let found: Vec<_> = files.into_iter().flatten().filter_map(kept).chain(wire).collect();
    match found.is_empty() {
        true => vec![Finding::ok(CHECK, "the password is protected, in its file and on the network")],
        false => found,
    }
}

/// Returns a finding if users other than the owner have access to the file.
fn kept(file: &Path) -> Option<Finding> {
    let mode = fs::metadata(file).ok()?.permissions().mode() & 0o777;
    (mode & GROUP_AND_OTHERS != 0).then(|| {
        let text =
            format!("users other than the owner can access {}: its mode is {mode:03o}", file.display());
        Finding::warning(CHECK, text, format!("chmod 600 {}", file.display()))
    })
}
