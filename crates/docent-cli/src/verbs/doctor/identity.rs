use super::finding::{Cause, Finding};
use docent::client::{Client, Error, ErrorKind, Options, ProvedIdentity};
use docent::node::{Acl, Permissions};
use std::path::Path;

const CHECK: &str = "identity";

/// Schemes by which the servers know a client that authenticated with a user and a password.
const OF_PASSWORDS: [&str; 2] = ["digest", "super"];

/// Identities of the client: those that its servers reported, and that of its credentials file.
#[derive(Debug, Default)]
pub(super) struct Identity {
    /// Identities at the servers. `None` if the servers did not report them.
    pub(super) proved: Option<Vec<ProvedIdentity>>,
    /// Access control list entry for the user and password of the file. `None` without a file.
    pub(super) own: Option<Acl>,
}

impl Identity {
    /// Asks the servers for the identities of `client`, and compares them with its settings.
    pub(super) async fn query(client: &Client, options: &Options) -> (Self, Finding) {
        let credentials = options.credentials().ok().flatten();
        let own = credentials.map(|(user, password)| Acl::digest(&user, password, Permissions::ALL));
        match client.who_am_i().await {
            Ok(proved) => {
                let finding = judged(&proved, own.as_ref(), options.credentials_file.as_deref());
                (Self { proved: Some(proved), own }, finding)
            }
            Err(error) => {
                let finding = unreported(&error, own.is_some());
                (Self { proved: None, own }, finding)
            }
        }
    }

    /// Returns the identities that the servers reported, as text.
    pub(super) fn seen(&self) -> Option<String> {
        self.proved.as_deref().map(seen)
    }
}

fn judged(proved: &[ProvedIdentity], own: Option<&Acl>, file: Option<&Path>) -> Finding {
    let seen = seen(proved);
    let is_own = |proved: &ProvedIdentity, user: &str| {
        OF_PASSWORDS.contains(&&*proved.scheme) && (proved.scheme == "super" || proved.name == user)
    };
    match own.map(|own| user(&own.id)) {
        Some(user) if !proved.iter().any(|proved| is_own(proved, user)) => {
            let file = file.map_or_else(String::new, |file| format!(" from {}", file.display()));
            let text = format!("the servers identify this client as {seen}, not as the user {user}{file}");
            let remedy = "enable the digest scheme, which is on by default (DigestAuthenticationProvider.enabled), \
                          on every server in --connect";
            Finding::failure(CHECK, Cause::Permission, text, remedy)
        }
        _ => Finding::ok(CHECK, format!("the servers identify this client as {seen}")),
    }
}

/// Returns the finding for servers that did not report the client's identity.
fn unreported(error: &Error, has_credentials: bool) -> Finding {
    let text = "the servers do not report this client's identity: ZooKeeper does from 3.7 on";
    match error.kind() {
        ErrorKind::Unsupported if has_credentials => {
            let remedy = "check a node that only this user may read: `docent doctor PATH`";
            Finding::warning(CHECK, text, remedy)
        }
        ErrorKind::Unsupported => Finding::ok(CHECK, text),
        _ => {
            let text = format!("cannot ask the servers for this client's identity: {error}");
            Finding::failure(
                CHECK,
                Cause::Unreachable,
                text,
                "first fix the problems of the servers listed above",
            )
        }
    }
}

fn seen(proved: &[ProvedIdentity]) -> String {
    match proved {
        [] => "anonymous".to_owned(),
        proved => {
            let each = proved.iter().map(|proved| format!("{} {}", proved.scheme, proved.name));
            each.map(|one| one.trim_end().to_owned()).collect::<Vec<_>>().join(" and ")
        }
    }
}

/// Returns the user of an id of the scheme `digest`, without the password hash.
pub(super) fn user(id: &str) -> &str {
    id.split_once(':').map_or(id, |(user, _)| user)
}
