//! Nothing prints a secret: no value that could hold one, and no line of the log.

use crate::tls::authority::{Authority, Validity};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use docent::recipe::KeptNode;
use docent::{Acl, ChildrenCache, Client, CreateMode, Mutex, NodeCache, Permissions, SecretString, Tls};
use docent_proto::OpCode;
use docent_testkit::{Backend, Rule, TestServer, both_backends};
use docent_tests::{builder, soon, with_causes};
use futures_util::StreamExt;
use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex as Lock};
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

const PASSWORD: &str = "planted-password";
const WRONG: &str = "planted-mistake";
const TOKEN: &str = "planted-token";
const USERINFO: &str = "planted-userinfo";
const PAYLOAD: &str = "planted-payload";

/// All that was formatted and logged.
#[derive(Clone, Default)]
struct Printed(Arc<Lock<Vec<u8>>>);

impl Printed {
    /// Formats a value in both ways, alone and inside of another.
    fn value(&self, value: &dyn Debug) {
        let text = format!("{value:?}\n{value:#?}\n{:?}\n{:#?}\n", Some(value), Some(value));
        self.0.lock().unwrap().extend_from_slice(text.as_bytes());
    }

    /// Formats an error and what caused it.
    fn error(&self, error: &dyn Error) {
        self.value(&error);
        self.value(&format_args!("{}", with_causes(error)));
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Printed {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// The ways in which bytes could have been printed.
fn forms(secret: &[u8]) -> [String; 7] {
    let each =
        |form: fn(&u8) -> String, separator| secret.iter().map(form).collect::<Vec<_>>().join(separator);
    let buffer = format!("{:?}", Bytes::copy_from_slice(secret));
    [
        String::from_utf8_lossy(secret).into_owned(),
        secret.escape_ascii().to_string(),
        buffer.trim_start_matches('b').trim_matches('"').to_owned(),
        STANDARD.encode(secret),
        each(|byte| format!("{byte:02x}"), ""),
        each(|byte| format!("{byte:02X}"), ""),
        each(ToString::to_string, ", "),
    ]
}

/// Fails if one of `secrets` is in what was printed, in any form.
fn assert_hidden(printed: &Printed, secrets: &[(&str, &[u8])]) {
    let text = printed.text();
    // Values that are formatted over several lines have one byte on each.
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, secret) in secrets {
        for form in forms(secret) {
            for text in [&text, &joined] {
                if let Some(at) = text.find(&form) {
                    let around: String = text[..at].chars().rev().take(300).collect();
                    let around: String = around.chars().rev().collect();
                    panic!("the {name} was printed as {form:?} after: {around}");
                }
            }
        }
    }
}

/// The password that it takes to take the session of `client` over.
fn session_password(server: &TestServer, client: &Client) -> Bytes {
    server.front().sessions().password(client.session_id().unwrap()).unwrap()
}

both_backends! {
    async fn no_value_and_no_line_of_the_log_holds_a_secret(backend: Backend) {
        let printed = Printed::default();
        // With a single subscriber in the process, a line of code that another test's thread reaches first is taken to
        // interest nobody. With a second one, all of them are asked.
        let _ = tracing::subscriber::set_global_default(NoSubscriber::default());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .with_writer(printed.clone())
            .finish();
        // Were this the only subscriber, what another test's thread comes by first would be taken for never logged.
        let _another = tracing::Dispatch::new(tracing_subscriber::registry());
        // All tasks of this test run on this thread.
        let _logging = tracing::subscriber::set_default(subscriber);

        let server = backend.start().await;
        let settings = builder(&server, server.connect_string())
            .auth_digest("user", PASSWORD).auth("digest", format!("other:{TOKEN}").into_bytes()).allow_plaintext_auth();
        printed.value(&settings);
        let client = settings.connect().await.unwrap();
        let digest = Acl::digest("user", PASSWORD, Permissions::ALL);
        printed.value(&digest);
        printed.value(&SecretString::from(PASSWORD));
        printed.value(&client);
        printed.value(&client.state());

        client.create("/a/b", PAYLOAD, CreateMode::Persistent).await.unwrap();
        let acl = client.acl("/a/b").await.unwrap();
        assert!(acl.entries.contains(&digest));
        printed.value(&acl);
        client.set_acl("/a/b", acl.entries, None).await.unwrap();
        let transaction = client.transaction().create("/a/c", PAYLOAD, CreateMode::Persistent).set("/a/b", PAYLOAD, None);
        printed.value(&transaction);
        printed.value(&transaction.commit_exactly().await.unwrap());
        let kept = KeptNode::new(&client, "/a/kept", PAYLOAD).unwrap();
        soon(kept.present()).await.unwrap();
        printed.value(&kept);
        let (children, node) = (ChildrenCache::new(&client, "/a").unwrap(), NodeCache::new(&client, "/a/b").unwrap());
        soon(children.ready()).await.unwrap();
        soon(node.ready()).await.unwrap();
        printed.value(&(&children, children.current(), &node, node.changes()));
        let mut events = children.subscribe();
        printed.value(&events);
        for event in [soon(events.next()).await, soon(events.next()).await] {
            printed.value(&event.unwrap());
        }
        let mutex = Mutex::new(&client, "/a/lock").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        printed.value(&mutex);
        printed.value(&guard);
        printed.value(&guard.transaction().set("/a/b", PAYLOAD, None));
        // The session is attached again, with its password.
        server.front().add(Rule::on(OpCode::GetData).path(|path| path.ends_with("/a/b")).reset_after());
        soon(client.get("/a/b")).await.unwrap();
        printed.value(&client.watch_data("/a/b").unwrap());
        printed.value(&client.health());

        let wrong = builder(&server, server.connect_string()).auth_digest("user", WRONG).allow_plaintext_auth();
        let wrong = wrong.connect().await.unwrap();
        printed.error(&wrong.get("/a/b").await.unwrap_err());
        printed.error(&soon(Mutex::new(&wrong, "/a/lock").unwrap().acquire()).await.unwrap_err());
        let refused = builder(&server, server.connect_string()).auth("no-such-scheme", format!("other:{TOKEN}").into_bytes()).allow_plaintext_auth();
        printed.value(&refused);
        printed.error(&soon(refused.connect()).await.unwrap_err());

        let passwords = [session_password(&server, &client), session_password(&server, &wrong)];
        assert!(passwords.iter().all(|password| password.len() == 16));
        soon(guard.release()).await.unwrap();
        soon(client.close()).await;

        for userinfo in ["host", "host:1/chroot", "other,", "host:x"] {
            let settings = Client::builder(format!("user:{USERINFO}@{userinfo}"));
            printed.value(&settings);
            printed.error(&settings.build().unwrap_err());
        }
        printed.error(&Client::builder("host").auth_digest("user", PASSWORD).build().unwrap_err());
        printed.error(&Client::builder("host").auth_digest("us:er", PASSWORD).build().unwrap_err());

        let authority = Authority::new();
        let identity = authority.issue(&["client"], Validity::Now);
        let key = identity.key();
        let key = key.lines().nth(1).unwrap();
        let tls = Tls::new().ca_pem(authority.pem()).client_identity_pem(identity.chain(), identity.key());
        printed.value(&tls);
        // Keys in the wrong place are not repeated.
        for tls in [tls.clone().ca_pem(identity.key()), tls.clone().client_identity_pem(identity.key(), identity.chain())] {
            printed.error(&Client::builder("host").tls(tls).build().unwrap_err());
        }
        printed.value(&Client::builder("host").tls(tls));

        let text = printed.text();
        assert!(text.contains("TRACE") && text.contains("operation=\"get\""), "something was logged: {text}");
        let hash = digest.id.split_once(':').unwrap().1;
        assert_hidden(&printed, &[
            ("password", PASSWORD.as_bytes()),
            ("credentials", format!("user:{PASSWORD}").as_bytes()),
            ("digest", hash.as_bytes()),
            ("digest's bytes", &STANDARD.decode(hash).unwrap()),
            ("wrong password", WRONG.as_bytes()),
            ("credentials in a scheme", TOKEN.as_bytes()),
            ("password in a connect string", USERINFO.as_bytes()),
            ("session's password", &passwords[0]),
            ("other session's password", &passwords[1]),
            ("key", key.as_bytes()),
            ("payload", PAYLOAD.as_bytes()),
        ]);
    }
}
