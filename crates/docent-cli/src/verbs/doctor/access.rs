use super::finding::{Cause, Finding};
use super::grant;
use super::identity::Identity;
use docent::client::{Client, Error, ErrorKind, Options};

const CHECK: &str = "access";

/// Reads `path` and its access control list as the client of these options may.
pub(super) async fn check(client: &Client, path: &str, options: &Options, identity: &Identity) -> Finding {
    match client.exists(path).await {
        Ok(Some(_)) => {}
        Ok(None) => {
            let text = format!("{path} does not exist yet");
            return Finding::warning(CHECK, text, "nothing to do if it is new: the first write makes it");
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
        // The list may be shown to its administrators only.
        Err(error) if error.kind() == ErrorKind::NoAuth => {
            Finding::ok(CHECK, format!("{path} can be read; its access control list is not shown"))
        }
        Err(error) => failed(path, &error, options, identity),
    }
}

/// A read that the servers did not allow, or that failed.
fn failed(path: &str, error: &Error, options: &Options, identity: &Identity) -> Finding {
    if error.kind() == ErrorKind::InvalidInput {
        return Finding::failure(CHECK, Cause::Usage, error.to_string(), "give paths as in /shop/lock");
    }
    if error.kind() != ErrorKind::NoAuth {
        let remedy = "follow the remedies of the servers above";
        return Finding::failure(
            CHECK,
            Cause::Unreachable,
            format!("{path} cannot be read: {error}"),
            remedy,
        );
    }
    let seen = identity.seen().map_or_else(String::new, |seen| format!("; the servers see {seen}"));
    let (text, remedy) = match &options.credentials_file {
        Some(file) => (
            format!("permission denied at {path}, with the credentials in {}{seen}", file.display()),
            "compare user and password with the node's access control list: servers take any password, and a wrong \
             one shows only here",
        ),
        None => (
            format!("permission denied at {path}, without credentials{seen}"),
            "give --auth-file with the user and password that the node's access control list names",
        ),
    };
    Finding::failure(CHECK, Cause::Permission, text, remedy)
}
