//! `docent console`.

use crate::browser::{Browser, Reply};
use crate::docent_command::{Ended, PATIENCE, Running, run, servers};
use docent::server::Server;
use docent::{Client, Mutex};
use docent_battery::{Backend, Port, both_backends_in_real_time};
use docent_testkit::eventually;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::time::timeout;

const TOKEN: &str = "0123456789abcdef";

/// Servers that do not exist: what is refused is refused without them.
const NOWHERE: &str = "127.0.0.1:1";

/// Starts a console on a free port, and returns it with its address.
async fn start(connect: &str, options: &[&str]) -> (Running, String) {
    let words = ["console", "--listen", "127.0.0.1:0"];
    let mut console = Running::start(connect, words.iter().chain(options));
    let url = console.line().await;
    (console, url)
}

fn file(folder: &TempDir, name: &str, text: &str, mode: u32) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns the part of a text between these two.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{before} is missing in {text}"));
    rest.split_once(after).unwrap().0
}

/// Asks for the deletion of the lock's holder, and returns the question with the form that confirms it.
async fn ask_to_delete(browser: &Browser, headers: &[&str]) -> (Reply, String) {
    let lock = async || browser.get("/at/shop/lock", headers).await;
    let page = eventually(PATIENCE, lock, |page| page.body.contains("do=delete")).await.unwrap();
    let query = between(&page.body, "/act?do=delete", "\"").replace("&amp;", "&");
    let question = browser.get(&format!("/act?do=delete{query}"), headers).await;
    let field = |name: &str| {
        let value = between(&question.body, &format!("name=\"{name}\" value=\""), "\"");
        format!("{name}={}", value.replace('/', "%2F"))
    };
    let form = ["do", "path", "node", "czxid", "mzxid", "csrf"].map(field).join("&");
    (question, form)
}

#[track_caller]
fn assert_refused(ended: &Ended, code: i32, parts: &[&str]) {
    assert_eq!((ended.code, &*ended.stdout), (code, ""), "{ended:?}");
    for part in parts {
        assert!(ended.stderr.contains(part), "{part:?} is missing: {}", ended.stderr);
    }
}

#[tokio::test]
async fn other_machines_are_served_with_credentials_and_tls_only() {
    let folder = tempfile::tempdir().unwrap();
    let token = file(&folder, "token", TOKEN, 0o600);
    for (options, parts) in [
        (&[][..], &["0.0.0.0", "--token-file or --basic-auth-file", "--plaintext"][..]),
        (&["--token-file", &token], &["--https-cert and --https-key, or --plaintext"]),
        (&["--plaintext"], &["--token-file or --basic-auth-file"]),
        (&["--token-file", &token, "--https-cert", "x"], &["--https-key"]),
        (&["--listen", "localhost:80"], &["must be an IP address and a port"]),
        (&["--host", "https://zk.example"], &["without scheme"]),
    ] {
        let words = ["console"].iter().chain(options);
        let listen = ["--listen", "0.0.0.0:0"];
        let ended = match options.contains(&"--listen") {
            true => run(NOWHERE, words).await,
            false => run(NOWHERE, words.chain(&listen)).await,
        };
        assert_refused(&ended, 2, parts);
    }
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let shared = file(&folder, "shared", TOKEN, 0o644);
    let short = file(&folder, "short", "sesame\n", 0o600);
    let users = file(&folder, "users", "# staff\nann:sesame-sesame\nbob\n", 0o600);
    let empty = file(&folder, "empty", "", 0o600);
    for (options, parts) in [
        (["--token-file", &shared].to_vec(), &["shared\"", "mode 0644", "chmod 600"][..]),
        (["--token-file", &short].to_vec(), &["short\"", "at least 16 characters"]),
        (["--token-file", "/missing"].to_vec(), &["/missing", "No such file"]),
        (["--basic-auth-file", &users].to_vec(), &["line 3", "users\"", "user:password"]),
        (["--https-cert", &empty, "--https-key", &empty].to_vec(), &["empty\"", "no certificate in PEM"]),
    ] {
        let ended = run(NOWHERE, ["console", "--listen", "127.0.0.1:0"].iter().chain(&options)).await;
        assert_refused(&ended, 2, parts);
        assert!(!ended.stderr.contains("sesame"), "{}", ended.stderr);
    }
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert_refused(
        &run(NOWHERE, ["console", "--listen", &address]).await,
        1,
        &["cannot listen on", &address],
    );
}

#[tokio::test]
async fn servers_that_are_down_at_the_start_are_an_error() {
    let port = Port::claim().unwrap();
    let connect = port.address().to_string();
    let ended = run(&connect, ["console", "--listen", "127.0.0.1:0", "--timeout", "200ms"]).await;
    assert_refused(&ended, 69, &["docent: "]);
}

both_backends_in_real_time! {
    async fn the_page_has_its_headers_and_only_its_names(backend: Backend) {
        let server = backend.start().await;
        let (_console, url) = start(&servers(&server), &["--host", "zk.example"]).await;
        let browser = Browser::of(&url);
        let client = Client::connect(servers(&server)).await.unwrap();
        let guard = Mutex::new(&client, "/shop/lock").unwrap().acquire().await.unwrap();
        let locks = async || browser.get("/locks", &[]).await;
        let page = eventually(PATIENCE, locks, |page| page.body.contains("/shop/lock")).await.unwrap();
        assert_eq!(page.status, 200, "{page:?}");
        assert!(page.header("content-security-policy").starts_with("default-src 'none';"), "{page:?}");
        assert_eq!((page.header("x-frame-options"), page.header("cache-control")), ("DENY", "no-store"));
        assert!(page.header("set-cookie").ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{page:?}");
        for path in ["/healthz", "/readyz", "/metrics", "/api/v1/recipes", "/assets/console.js"] {
            let reply = browser.get(path, &[]).await;
            assert_eq!((reply.status, reply.header("set-cookie")), (200, ""), "{path}: {reply:?}");
            assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        }
        for good in ["Host: localhost", "Host: ZK.example:443", "Host: [::1]:80"] {
            assert_eq!(browser.get("/", &[good]).await.status, 200, "{good}");
        }
        let evil = browser.get("/", &["Host: evil.example"]).await;
        assert!(evil.status == 421 && evil.body.contains("evil.example"), "{evil:?}");
        assert!(evil.body.contains("--host") && !evil.header("content-security-policy").is_empty(), "{evil:?}");
        guard.release().await.unwrap();
        client.close().await;
    }

    async fn a_token_admits_browsers_and_programs(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let token = file(&folder, "token", &format!("{TOKEN}\n"), 0o600);
        let (mut console, url) = start(&servers(&server), &["--token-file", &token]).await;
        let browser = Browser::of(&url);
        let away = browser.get("/locks?q=a", &[]).await;
        assert_eq!((away.status, away.header("location")), (303, "/sign-in?to=/locks%3Fq%3Da"), "{away:?}");
        assert!(browser.get(away.header("location"), &[]).await.body.contains("name=\"token\""));
        let wrong = browser.post("/sign-in", &[], "token=wrong").await;
        assert_eq!((wrong.status, wrong.header("set-cookie")), (403, ""), "{wrong:?}");
        console.remarks().until("wrong token").await;
        let foreign = browser.post("/sign-in", &["Origin: http://evil.example"], &format!("token={TOKEN}")).await;
        assert_eq!((foreign.status, foreign.header("set-cookie")), (403, ""), "{foreign:?}");
        let right = browser.post("/sign-in", &[], &format!("token={TOKEN}&to=/locks?q=a")).await;
        assert_eq!((right.status, right.header("location")), (303, "/locks?q=a"), "{right:?}");
        let cookie = right.cookie();
        let page = browser.get("/", &[&cookie]).await;
        assert_eq!(page.status, 200, "{page:?}");
        let csrf = between(&page.body, "name=\"csrf\" value=\"", "\"");
        assert_eq!(browser.post("/sign-out", &[&cookie], "csrf=wrong").await.status, 403);
        assert_eq!(browser.post("/sign-out", &[&cookie], &format!("csrf={csrf}")).await.status, 303);
        assert_eq!(browser.get("/", &[&cookie]).await.status, 303, "signed out");
        let bearer = format!("Authorization: Bearer {TOKEN}");
        for path in ["/metrics", "/api/v1/recipes"] {
            assert_eq!(browser.get(path, &[]).await.status, 401, "{path}");
            assert_eq!(browser.get(path, &["Authorization: Bearer wrong"]).await.status, 401, "{path}");
            assert_eq!(browser.get(path, &[&bearer]).await.status, 200, "{path}");
        }
        assert_eq!(browser.get("/healthz", &[]).await.status, 200);
    }

    async fn an_action_is_reported_with_who_did_it(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        let guard = Mutex::new(&client, "/shop/lock").unwrap().acquire().await.unwrap();
        let (mut console, url) = start(&servers(&server), &["--allow-actions"]).await;
        let browser = Browser::of(&url);
        let (question, form) = ask_to_delete(&browser, &[]).await;
        let cookie = question.cookie();
        let stolen = browser.post("/act", &[], &form).await;
        assert_eq!(stolen.status, 403, "the form of another session: {stolen:?}");
        let done = browser.post("/act", &[&cookie], &form).await;
        assert_eq!(done.status, 303, "{done:?}");
        let line = console.remarks().until("action applied").await;
        assert!(line.contains("anonymous from 127.0.0.1") && line.contains("/shop/lock/"), "{line}");
        timeout(PATIENCE, guard.lost()).await.expect("the node must have been deleted");
        client.close().await;
    }

    async fn a_lost_server_is_shown_and_does_not_end_the_console(backend: Backend) {
        let server = backend.start_own().await;
        let (console, url) = start(&server.address().to_string(), &[]).await;
        let browser = Browser::of(&url);
        let ready = async |wanted: u16| {
            let status = async || browser.get("/readyz", &[]).await.status;
            eventually(PATIENCE, status, |status| *status == wanted).await.unwrap();
        };
        ready(200).await;
        server.stop().await;
        ready(503).await;
        let page = browser.get("/locks", &[]).await;
        assert!(page.status == 200 && page.body.contains("Stale since"), "{page:?}");
        assert_eq!(browser.get("/healthz", &[]).await.status, 200);
        server.start_again().await;
        ready(200).await;
        assert_eq!(console.stop(Signal::TERM).await, 0);
    }
}

#[tokio::test]
async fn users_of_a_file_are_admitted_with_their_passwords() {
    let server = Server::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let users = file(&folder, "users", "# staff\nann:open-sesame\n", 0o600);
    let (_console, url) = start(server.connect_string(), &["--basic-auth-file", &users]).await;
    let browser = Browser::of(&url);
    let away = browser.get("/", &[]).await;
    assert_eq!(away.status, 401);
    assert!(away.header("www-authenticate").starts_with("Basic realm="), "{away:?}");
    // ann:open-sesame and ann:close-sesame
    assert_eq!(browser.get("/", &["Authorization: Basic YW5uOm9wZW4tc2VzYW1l"]).await.status, 200);
    assert_eq!(browser.get("/", &["Authorization: Basic YW5uOmNsb3NlLXNlc2FtZQ=="]).await.status, 401);
}

#[tokio::test]
async fn an_action_is_reported_with_the_signed_in_user_also_if_it_is_refused() {
    let server = Server::start().await.unwrap();
    let client = Client::connect(server.connect_string()).await.unwrap();
    let guard = Mutex::new(&client, "/shop/lock").unwrap().acquire().await.unwrap();
    let node = format!("/shop/lock/{}", client.children("/shop/lock").await.unwrap().names[0]);
    let folder = tempfile::tempdir().unwrap();
    let users = file(&folder, "users", "ann:open-sesame\nbob:shut-sesame\n", 0o600);
    let options = ["--allow-actions", "--basic-auth-file", &users];
    let (mut console, url) = start(server.connect_string(), &options).await;
    let mut remarks = console.remarks();
    let browser = Browser::of(&url);
    // ann:open-sesame and bob:shut-sesame
    let [ann, bob] =
        ["YW5uOm9wZW4tc2VzYW1l", "Ym9iOnNodXQtc2VzYW1l"].map(|pair| format!("Authorization: Basic {pair}"));
    let (_, outdated) = ask_to_delete(&browser, &[&ann]).await;
    client.set(&node, "changed", None).await.unwrap();
    let refused = browser.post("/act", &[&ann], &outdated).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    let mut is_reported = async |event: &str, parts: [&str; 3]| {
        let line = remarks.until(event).await;
        for part in parts.iter().chain(&["action=\"delete\""]) {
            assert!(line.contains(part), "{part:?} is missing: {line}");
        }
    };
    is_reported("action failed", ["user=ann", "path=/shop/lock", "the node was changed"]).await;
    let (_, form) = ask_to_delete(&browser, &[&bob]).await;
    let stolen = browser.post("/act", &[&ann], &form).await;
    assert_eq!(stolen.status, 403, "the form of another user: {stolen:?}");
    is_reported("action refused", ["user=ann", "path=/shop/lock", "the form is not of this session"]).await;
    let done = browser.post("/act", &[&bob], &form).await;
    assert_eq!(done.status, 303, "{done:?}");
    is_reported("action applied", ["user=bob", "path=", &node]).await;
    timeout(PATIENCE, guard.lost()).await.expect("the node must have been deleted");
    client.close().await;
}

#[tokio::test]
async fn a_certificate_serves_the_page_over_tls_and_can_be_replaced() {
    let server = Server::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let renew = |age: u64| {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        for (name, text) in [("cert", cert.pem()), ("key", signing_key.serialize_pem())] {
            let path = file(&folder, name, &text, 0o600);
            let modified = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(age);
            fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
        }
        cert.der().clone()
    };
    let first = renew(1);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let options = ["--https-cert", &path("cert"), "--https-key", &path("key")];
    let (console, url) = start(server.connect_string(), &options).await;
    let browser = Browser::secure(&url, first);
    let page = browser.get("/", &[]).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.header("set-cookie").ends_with("; Path=/; Secure"), "{page:?}");
    assert_eq!(page.header("strict-transport-security"), "");
    let plain = Browser::of(&url.replace("https", "http"));
    assert!(plain.try_get("/").await.is_err(), "nothing is served without TLS");
    let second = Browser::secure(&url, renew(2));
    assert_eq!(second.get("/", &[]).await.status, 200);
    assert!(browser.try_get("/").await.is_err(), "the first certificate must have been replaced");
    assert_eq!(console.stop(Signal::TERM).await, 0);
}

#[tokio::test]
async fn a_signal_ends_the_console_although_event_streams_are_open() {
    let server = Server::start().await.unwrap();
    let mut console = Running::start(
        server.connect_string(),
        ["-o", "json", "console", "--listen", "127.0.0.1:0", "--root", "/"],
    );
    let line: serde_json::Value = serde_json::from_str(&console.line().await).unwrap();
    let browser = Browser::of(line["url"].as_str().unwrap());
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = browser.open("/events?view=%2Flocks", &[]).await.unwrap();
        let mut text = Vec::new();
        while !String::from_utf8_lossy(&text).contains("event: patch") {
            assert!(timeout(PATIENCE, stream.read_buf(&mut text)).await.unwrap().unwrap() > 0);
        }
        streams.push(stream);
    }
    let signalled = Instant::now();
    assert_eq!(console.stop(Signal::INT).await, 0);
    // The streams get two seconds, and the end of the session at most two more.
    assert!(signalled.elapsed() < Duration::from_secs(20), "{:?}", signalled.elapsed());
    for mut stream in streams {
        timeout(PATIENCE, async {
            while stream.read_buf(&mut Vec::new()).await.is_ok_and(|count| count > 0) {}
        })
        .await
        .expect("the stream must end");
    }
    assert!(browser.try_get("/").await.is_err(), "nothing is served any more");
}
