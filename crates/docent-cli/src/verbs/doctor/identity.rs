use super::finding::{Cause, Finding};
use docent::client::{Client, Error, ErrorKind, Options, ProvedIdentity};
use docent::node::{Acl, Permissions};
use std::path::Path;

const CHECK: &str = "identity";

/// Schemes by which the servers know a client that proved a user and a password.
const OF_PASSWORDS: [&str; 2] = ["digest", "super"];

/// Identities of the client: those that its servers told, and that of its file of credentials.
#[derive(Debug, Default)]
pub(super) struct Identity {
    /// Identities at the servers; `None` where they did not tell.
    pub(super) proved: Option<Vec<ProvedIdentity>>,
    /// Entry of a list that names the user and password of the file; `None` without a file.
    pub(super) own: Option<Acl>,
}

impl Identity {
    /// Asks the servers whom they take `client` for, and compares that with its settings.
    pub(super) async fn ask(client: &Client, options: &Options) -> (Self, Finding) {
        let credentials = options.credentials().ok().flatten();
        let own = credentials.map(|(user, password)| Acl::digest(&user, password, Permissions::ALL));
        match client.who_am_i().await {
            Ok(proved) => {
                let finding = judged(&proved, own.as_ref(), options.credentials_file.as_deref());
                (Self { proved: Some(proved), own }, finding)
            }
            Err(error) => {
                let finding = untold(&error, own.is_some());
                (Self { proved: None, own }, finding)
            }
        }
    }

    /// The identities that the servers told, for a sentence.
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
            let file = file.map_or_else(String::new, |file| format!(" of {}", file.display()));
            let text = format!("the servers see {seen}, and not the user {user}{file}");
            let remedy = "let the servers take the scheme digest, as they do by default \
                          (DigestAuthenticationProvider.enabled), at every server in --connect";
            Finding::failure(CHECK, Cause::Permission, text, remedy)
        }
        _ => Finding::ok(CHECK, format!("the servers see {seen}")),
    }
}

/// The servers did not tell whom they see.
fn untold(error: &Error, has_credentials: bool) -> Finding {
    let text = "the servers do not tell whom they see: ZooKeeper does from 3.7 on";
    match error.kind() {
        ErrorKind::Unsupported if has_credentials => {
            let remedy = "look at a node that only this user may read: `docent doctor PATH`";
            Finding::warning(CHECK, text, remedy)
        }
        ErrorKind::Unsupported => Finding::ok(CHECK, text),
        _ => {
            let text = format!("the servers do not tell whom they see: {error}");
            Finding::failure(CHECK, Cause::Unreachable, text, "follow the remedies of the servers above")
        }
    }
}

fn seen(proved: &[ProvedIdentity]) -> String {
    match proved {
        [] => "nobody in particular".to_owned(),
        proved => {
            let each = proved.iter().map(|proved| format!("{} {}", proved.scheme, proved.name));
            each.map(|one| one.trim_end().to_owned()).collect::<Vec<_>>().join(" and ")
        }
    }
}

/// The user that an id of the scheme `digest` names, without the hash of the password.
pub(super) fn user(id: &str) -> &str {
    id.split_once(':').map_or(id, |(user, _)| user)
}
