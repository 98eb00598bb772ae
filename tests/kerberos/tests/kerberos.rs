//! Clients that authenticate with SASL, mechanism GSSAPI, at a real ZooKeeper and with a KDC of their own.
//!
//! `cargo xtask test --full` installs the packages and builds the suite with
//! `RUSTFLAGS="--cfg docent_gssapi"`. Other builds have none of these tests.

#![cfg(docent_gssapi)]
#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use docent_kerberos::{NO_TICKET, PATIENCE, Program, Site, assert_contains};
use docent_testkit::eventually;
use std::path::Path;

/// The client's settings with the client keytab of `alice`.
fn with_keytab(site: &Site) -> [(&'static str, &str); 1] {
    [("KRB5_CLIENT_KTNAME", site.alice.to_str().unwrap())]
}

/// Starts a client with these variables, too.
fn start(site: &Site, more: &[(&'static str, &str)]) -> Program {
    Program::start(Path::new(env!("CARGO_BIN_EXE_kerberos_client")), &site.environment(more))
}

/// Returns how a client with these variables fails to connect within a few seconds.
async fn failure(site: &Site, more: &[(&'static str, &str)]) -> String {
    let more = [&[("DOCENT_OPERATION_TIMEOUT", "5s")], more].concat();
    start(site, &more).ask("connect").await
}

#[tokio::test]
async fn a_ticket_proves_the_identity_on_each_link_and_is_looked_up_for_each() {
    let site = Site::start().await;
    site.kinit("1h");
    let mut client = start(&site, &[]);
    assert_contains(&client.ask("connect").await, &["sasl:alice"]);
    let created = r#"Ok(()) Ok(["sasl:alice"]) in generation 1"#;
    assert_contains(&client.ask("create /a").await, &[created]);
    site.server.stop();
    site.kdestroy();
    site.server.start_again().await.unwrap();
    eventually(PATIENCE, async || client.ask("why").await, |why| why.contains(NO_TICKET)).await.unwrap();
    site.kinit("1h");
    // The same session: another one would be of generation 2.
    assert_contains(&client.ask("create /b").await, &[created]);
    assert_contains(&client.ask("close").await, &["closed"]);
}

#[tokio::test]
async fn a_server_whose_key_changed_refuses_a_ticket_and_ends_no_session() {
    let site = Site::start().await;
    site.kinit("1h");
    let canonical = site.realm.path("canonical.conf");
    let mut client = start(&site, &[("KRB5_CONFIG", canonical.to_str().unwrap())]);
    assert_contains(&client.ask("connect").await, &["sasl:alice"]);
    site.server.stop();
    site.realm.rotate("zookeeper/localhost", &site.keytab);
    site.server.start_again().await.unwrap();
    let refused = "the server refused the Kerberos ticket for zookeeper/localhost";
    eventually(PATIENCE, async || client.ask("why").await, |why| why.contains(refused)).await.unwrap();
    // A new client has no session to keep.
    assert_contains(&failure(&site, &[]).await, &["AuthFailed", refused]);
    site.kdestroy();
    site.kinit("1h");
    let created = r#"Ok(()) Ok(["sasl:alice"]) in generation 1"#;
    assert_contains(&client.ask("create /a").await, &[created]);
    assert_contains(&client.ask("close").await, &["closed"]);
}

#[tokio::test]
async fn a_client_keytab_replaces_tickets_that_have_expired() {
    let site = Site::start().await;
    site.kinit("1s");
    site.realm.expire(&site.cache).await;
    assert_contains(&failure(&site, &[]).await, &["Timeout", NO_TICKET]);
    let mut client = start(&site, &with_keytab(&site));
    assert_contains(&client.ask("connect").await, &["sasl:alice"]);
    assert_contains(&client.ask("close").await, &["closed"]);
    // The library kept the tickets in the cache, so it needs no KDC now.
    let down = site.realm.path("down.conf");
    let down = [with_keytab(&site)[0], ("KRB5_CONFIG", down.to_str().unwrap())];
    assert_contains(&start(&site, &down).ask("connect").await, &["sasl:alice"]);
    site.kdestroy();
    assert_contains(&failure(&site, &down).await, &["Timeout", "Cannot contact any KDC"]);
}

#[tokio::test]
async fn a_wrong_principal_is_named() {
    let site = Site::start().await;
    assert_contains(&failure(&site, &[]).await, &["Timeout", NO_TICKET, "No Kerberos credentials available"]);
    let stranger = site.realm.add(&["stranger"]);
    site.realm.remove("stranger");
    let with_stranger = [("KRB5_CLIENT_KTNAME", stranger.to_str().unwrap())];
    assert_contains(
        &failure(&site, &with_stranger).await,
        &["Timeout", NO_TICKET, "not found in Kerberos database"],
    );
    site.kinit("1h");
    let unknown = failure(&site, &[("DOCENT_SASL_SERVICE", "hbase")]).await;
    assert_contains(
        &unknown,
        &["Timeout", "for the server hbase/localhost", "not found in Kerberos database"],
    );
    let other = failure(&site, &[("DOCENT_SASL_SERVER_PRINCIPAL", "zookeeper/other")]).await;
    assert_contains(&other, &["AuthFailed", "the server refused the Kerberos ticket for zookeeper/other"]);
    // The principal has the name of the host, and not its address.
    let address = site.server.connect_string();
    let by_address = [("DOCENT_CONNECT", address.as_str())];
    assert_contains(&failure(&site, &by_address).await, &["for the server zookeeper/127.0.0.1"]);
    let named = [by_address[0], ("DOCENT_SASL_SERVER_PRINCIPAL", "zookeeper/localhost@TEST.DOCENT")];
    assert_contains(&start(&site, &named).ask("connect").await, &["sasl:alice"]);
}

#[tokio::test]
async fn a_kdc_that_hangs_blocks_neither_connecting_nor_closing() {
    let site = Site::start().await;
    let mut client = start(&site, &with_keytab(&site));
    assert_contains(&client.ask("connect").await, &["sasl:alice"]);
    site.server.stop();
    site.kdestroy();
    site.realm.freeze_kdc();
    let soon = [with_keytab(&site)[0], ("DOCENT_OPERATION_TIMEOUT", "2s")];
    site.server.start_again().await.unwrap();
    let failed = start(&site, &soon).ask("connect").await;
    assert_contains(&failed, &["Timeout", "connected, but no Kerberos ticket yet", "in a call: true"]);
    // The connected client waits for a ticket, too.
    eventually(PATIENCE, async || client.ask("why").await, |why| why.contains("in a call: true"))
        .await
        .unwrap();
    assert_contains(&client.ask("close").await, &["closed; in a call: true"]);
    let mut abandoned = start(&site, &with_keytab(&site));
    assert_contains(&abandoned.ask("abandon").await, &["abandoned; in a call: true"]);
    site.realm.thaw_kdc();
    assert_contains(&abandoned.ask("connect").await, &["sasl:alice"]);
    assert_contains(&abandoned.ask("close").await, &["closed; in a call: false"]);
}
