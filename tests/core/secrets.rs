//! No value that could contain a secret, and no log line, prints one.

use crate::tls::authority::{Authority, Validity};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use docent::cache::{ChildrenCache, NodeCache};
use docent::client::SecretString;
use docent::config::Change;
use docent::discovery::MemberChange;
use docent::locks::{Owner, SharedLimit};
use docent::node::{Acl, Permissions};
use docent::recipe::KeptNode;
use docent::{
    Barrier, Client, Config, ConfigTree, Counter, CreateMode, DoubleBarrier, Election, Instance, Membership,
    MultiLock, Mutex, Registry, RwLock, Semaphore, SharedValue, Tls,
};
use docent_battery::{Backend, Rule, TestServer, both_backends};
use docent_proto::OpCode;
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

/// All formatted and logged text.
#[derive(Clone, Default)]
pub(crate) struct Printed(Arc<Lock<Vec<u8>>>);

impl Printed {
    /// Collects everything that this thread logs, as long as the second returned value lives.
    pub(crate) fn from_here_on() -> (Self, impl Sized) {
        let printed = Self::default();
        // With a single subscriber in the process, tracing disables a call site that another test's thread
        // reaches first. With a second subscriber, tracing asks all of them.
        let _ = tracing::subscriber::set_global_default(NoSubscriber::default());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .with_writer(printed.clone())
            .finish();
        // If this were the only subscriber, tracing would permanently disable call sites that another test's
        // thread reaches first.
        let another = tracing::Dispatch::new(tracing_subscriber::registry());
        // All tasks of a test run on its thread.
        (printed, (tracing::subscriber::set_default(subscriber), another))
    }

    /// Returns the lines that contain `what`.
    pub(crate) fn lines_with(&self, what: &str) -> Vec<String> {
        self.text().lines().filter(|line| line.contains(what)).map(str::to_owned).collect()
    }

    /// Formats a value in both ways, alone and inside another value.
    fn value(&self, value: &dyn Debug) {
        let text = format!("{value:?}\n{value:#?}\n{:?}\n{:#?}\n", Some(value), Some(value));
        self.0.lock().unwrap().extend_from_slice(text.as_bytes());
    }

    /// Formats an error and its causes.
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

/// Every form in which bytes could be printed.
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

/// Panics if one of `secrets` was printed in any form.
fn assert_hidden(printed: &Printed, secrets: &[(&str, &[u8])]) {
    let text = printed.text();
    // Values that are formatted over several lines have one byte per line.
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

/// Returns the password with which the session of `client` could be taken over.
fn session_password(server: &TestServer, client: &Client) -> Bytes {
    server.front().sessions().password(client.session_id().unwrap()).unwrap()
}

/// Formats the values that recipes return, while the payload is in their nodes.
async fn recipes(printed: &Printed, client: &Client) {
    let rw_lock = RwLock::new(client, "/r/w").unwrap();
    let writing = soon(rw_lock.write()).await.unwrap();
    printed.value(&(&rw_lock, &writing, soon(rw_lock.participants()).await.unwrap()));
    let reading = soon(writing.downgrade()).await.unwrap();
    printed.value(&reading);

    let limit = SharedLimit::new(client, "/r/limit", 2).unwrap();
    soon(limit.set(3)).await.unwrap();
    let semaphore = Semaphore::with_limit(client, "/r/s", &limit).unwrap();
    let permit = soon(semaphore.acquire_many(2)).await.unwrap();
    printed.value(&(&limit, &semaphore, &permit, soon(semaphore.participants()).await.unwrap()));

    let both = MultiLock::new([Mutex::new(client, "/r/1").unwrap().into(), rw_lock.reading()]).unwrap();
    let guards = soon(both.acquire()).await.unwrap();
    printed.value(&(&both, &guards, guards.transaction().set("/a/b", PAYLOAD, None)));

    let (barrier, door) =
        (Barrier::new(client, "/r/b").unwrap(), DoubleBarrier::new(client, "/r/d", 1).unwrap());
    assert!(soon(barrier.set()).await.unwrap());
    let entered = soon(door.enter()).await.unwrap();
    printed.value(&(&barrier, &door, &entered, Owner::new()));

    let builder = Election::builder(client, "/r/e").data(PAYLOAD);
    printed.value(&builder);
    let election = builder.build().unwrap();
    let leadership = soon(election.campaign()).await.unwrap();
    let mut leaders = election.observe();
    printed.value(&(&election, &leadership, &leaders));
    let observed = soon(leaders.next()).await;
    assert!(format!("{observed:?}").contains(&format!("{} bytes", PAYLOAD.len())), "{observed:?}");
    let leader = soon(election.leader()).await.unwrap().unwrap();
    assert_eq!(leader.data, PAYLOAD);
    printed.value(&(observed, leader, soon(election.candidates()).await.unwrap()));
    soon(leadership.resign()).await.unwrap();
    soon(guards.release()).await.unwrap();
}

/// Formats the values that configuration, discovery and membership return. Makes them log rejected data.
async fn assert_log(printed: &Printed, client: &Client) {
    let group = Membership::new(client, "/t/group").unwrap();
    let member = soon(group.join("one", PAYLOAD)).await.unwrap();
    let members = soon(group.members()).await.unwrap();
    let mut changes = members.changes();
    let joined = soon(changes.next()).await.unwrap().unwrap();
    assert!(matches!(&joined, MemberChange::Joined(peer) if peer.data == PAYLOAD));
    printed.value(&(&group, &member, member.presence(), &members, members.current(), &changes, joined));
    member.set_data(format!("2 {PAYLOAD}"));

    let registry = Registry::new(client, "/t/services").unwrap();
    let instance = Instance::new("orders", "10.0.0.7", 80).id("1").payload(PAYLOAD.to_owned());
    printed.value(&instance);
    let registration = soon(registry.register(instance)).await.unwrap();
    client
        .create("/t/services/orders/2", format!("{{\"port\":\"{PAYLOAD}\"}}"), CreateMode::Persistent)
        .await
        .unwrap();
    let view = soon(registry.typed_service::<String>("orders")).await.unwrap();
    assert_eq!(view.instances().unreadable().len(), 1);
    let picked = view.pick().unwrap();
    assert_eq!(picked.payload.as_deref(), Some(PAYLOAD));
    printed.value(&(&registry, &registration, registration.status(), &view, view.instances(), &picked));
    let mut changes = view.changes();
    let shown = [soon(changes.next()).await, soon(changes.next()).await];
    printed.value(&shown);
    let numbers = soon(registry.typed_service::<u64>("orders")).await.unwrap();
    assert_eq!(numbers.instances().unreadable().len(), 2);
    printed.value(&(numbers.instances(), numbers.pick().map(drop)));
    picked.failed();

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let builder =
        Config::<String>::builder(client, "/t/config").default_value(PAYLOAD.to_owned()).snapshot_file(&file);
    let builder = builder.validate(|value: &String| match value.ends_with('!') {
        true => Err(format!("{value} must not")),
        false => Ok(()),
    });
    printed.value(&builder);
    let config = builder.build().unwrap();
    let published = soon(config.publish(&PAYLOAD.to_owned())).await.unwrap();
    let refused = soon(config.publish(&format!("{PAYLOAD}!"))).await.unwrap_err();
    printed.error(&refused);
    soon(config.publish(&format!("2 {PAYLOAD}"))).await.unwrap();
    let mut following = soon(config.subscribe()).await.unwrap();
    printed.value(&(
        &config,
        published,
        &following,
        following.current(),
        soon(config.history()).await.unwrap(),
    ));
    for bad in [format!("\"{PAYLOAD}!\""), format!("{{\"{PAYLOAD}\":")] {
        client.set("/t/config", bad, None).await.unwrap();
        let change = soon(following.changed()).await.unwrap().unwrap();
        assert!(matches!(change, Change::Refused(_)), "{change:?}");
        printed.value(&change);
        printed.error(&soon(config.get()).await.unwrap_err());
        printed.error(&soon(config.update(|_| None)).await.unwrap_err());
    }
    std::fs::write(&file, PAYLOAD).unwrap();
    let again = Config::<String>::builder(client, "/t/config").snapshot_file(&file).build().unwrap();
    printed.error(&soon(again.subscribe()).await.unwrap_err());
    let tree = ConfigTree::<String>::new(client, "/t").unwrap();
    let tree = soon(tree.subscribe()).await.unwrap();
    printed.value(&(&tree, tree.current()));
    let shared = SharedValue::new(client, "/t/shared", PAYLOAD).unwrap();
    printed.value(&(&shared, soon(shared.get()).await.unwrap()));
    client.create("/t/counter", &PAYLOAD[..3], CreateMode::Persistent).await.unwrap();
    printed.error(&soon(Counter::<i64>::new(client, "/t/counter").unwrap().increment()).await.unwrap_err());
    soon(registration.deregister()).await.unwrap();
    soon(member.leave()).await.unwrap();
}

both_backends! {
    async fn no_value_and_no_line_of_the_log_holds_a_secret(backend: Backend) {
        let (printed, _logging) = Printed::from_here_on();
        let server = backend.start().await;
        let settings = builder(&server, server.connect_string())
            .auth_digest("user", PASSWORD).auth("digest", format!("other:{TOKEN}").into_bytes()).allow_plaintext_auth();
        printed.value(&settings);
        let client = settings.identity("till-7").connect().await.unwrap();
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
        printed.value(&(client.get("/a/b").await.unwrap(), client.children("/a").await.unwrap()));
        let kept = KeptNode::new(&client, "/a/kept", PAYLOAD).unwrap();
        soon(kept.present()).await.unwrap();
        printed.value(&kept);
        let (children, node) = (ChildrenCache::new(&client, "/a").unwrap(), NodeCache::new(&client, "/a/b").unwrap());
        soon(children.ready()).await.unwrap();
        soon(node.ready()).await.unwrap();
        printed.value(&(&children, children.current(), &node, node.changes()));
        let mut events = children.changes();
        printed.value(&events);
        for event in [soon(events.next()).await, soon(events.next()).await] {
            printed.value(&event.unwrap());
        }
        let mutex = Mutex::new(&client, "/a/lock").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        printed.value(&mutex);
        printed.value(&guard);
        printed.value(&guard.transaction().set("/a/b", PAYLOAD, None));
        recipes(&printed, &client).await;
        assert_log(&printed, &client).await;
        // The session is re-attached with its password.
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
        // Errors do not repeat keys that are in the wrong place.
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
