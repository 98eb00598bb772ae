use super::finding::{Cause, Finding};
use super::grant;
use super::identity::Identity;
use docent::client::{Client, Error, ErrorKind, Options};

const CHECK: &str = "access";

/// Reads `path` and its access control list with the permissions of the client.
pub(super) async fn check(client: &Client, path: &str, options: &Options, identity: &Identity) -> Finding {
    match client.exists(path).await {
        Ok(Some(_)) => {}
        Ok(None) => {
            let text = format!("{path} does not exist yet");
            return Finding::warning(
                CHECK,
                text,
                "nothing to do if the path is new: the first write creates the node",
            );
        }
        Err(error) => return failed(path, &error, options, identity),
    }
    if let Err(error) = client.children(path).await {
        return failed(path, &error, options, identity);
    }
    match client.acl(path).await {
        Ok(acl) => {
            Finding::ok(CHECK, format!("{path} can be read; {}", grant::shown(&acl.entries, identity)))
        }
        // Only administrators may be allowed to read the list.
        Err(error) if error.kind() == ErrorKind::NoAuth => {
            Finding::ok(CHECK, format!("{path} can be read; its access control list cannot"))
        }
        Err(error) => failed(path, &error, options, identity),
    }
}

/// Returns the finding for a read that was not permitted or failed.
fn failed(path: &str, error: &Error, options: &Options, identity: &Identity) -> Finding {
    if error.kind() == ErrorKind::InvalidInput {
        return Finding::failure(
            CHECK,
            Cause::Usage,
            error.to_string(),
            "give an absolute path, such as /shop/lock",
        );
    }
    if error.kind() != ErrorKind::NoAuth {
        let remedy = "first fix the problems of the servers listed above";
        return Finding::failure(CHECK, Cause::Unreachable, format!("cannot read {path}: {error}"), remedy);
    }
    let seen = identity
        .seen()
        .map_or_else(String::new, |seen| format!("; the servers identify this client as {seen}"));
    let (text, remedy) = match (&options.credentials_file, &options.sasl_credentials_file) {
        (None, _) if options.sasl_gssapi => (
            format!("permission denied at {path} with the Kerberos ticket{seen}"),
            "give the principal an entry of the scheme sasl in the node's access control list",
        ),
        (Some(file), _) => (
            format!("permission denied at {path} with the credentials in {}{seen}", file.display()),
            "compare user and password with the node's access control list: servers accept any password at login, \
             so a wrong one shows only here",
        ),
        (None, Some(file)) => (
            format!("permission denied at {path} with the SASL user in {}{seen}", file.display()),
            "give the user an entry of the scheme sasl in the node's access control list",
        ),
        (None, None) => (
            format!("permission denied at {path}, without credentials{seen}"),
            "give --auth-file or --sasl-file with a user and password that the node's access control list names, \
             or --sasl-gssapi with the ticket of such a principal",
        ),
    };
    Finding::failure(CHECK, Cause::Permission, text, remedy)
}
