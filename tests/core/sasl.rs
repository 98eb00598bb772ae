//! Clients that prove their identity with SASL, and servers that require it.

use docent::client::{ClientBuilder, Sasl};
use docent::node::{Acl, Permissions};
use docent::{Client, ConnectionState, CreateMode, ErrorKind, Mutex};
use docent_battery::{Backend, Rule, ServerOptions, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, pause, soon};

/// Starts a server with users that refuses all other clients.
async fn closed(backend: Backend) -> TestServer {
    let options = ServerOptions::default().sasl_user("me", "right").sasl_user("you", "right");
    backend.start_own_with(options.require_sasl(true)).await
}

fn of(server: &TestServer, user: &str, password: &str) -> ClientBuilder {
    builder(server, server.connect_string()).sasl(Sasl::digest_md5(user, password))
}

async fn connect(server: &TestServer, user: &str) -> Client {
    soon(of(server, user, "right").connect()).await.unwrap()
}

both_backends! {
    async fn the_identity_is_proved_before_anything_else_on_each_link(backend: Backend) {
        let server = closed(backend).await;
        let client = connect(&server, "me").await;
        let state = client.state();
        let proved = client.who_am_i().await.unwrap();
        let mut names: Vec<_> = proved.iter().map(|one| (&*one.scheme, &*one.name)).collect();
        names.sort_unstable();
        assert_eq!(names, [("ip", "127.0.0.1"), ("sasl", "me")]);
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        for link in 0..3 {
            server.front().reset().await;
            // This request waits for the next link, and is refused if it overtakes the authentication.
            soon(client.create(&format!("/a{link}"), "", CreateMode::Persistent)).await.unwrap();
        }
        assert_eq!(state.current().generation, 1, "the session survived");
        assert!(guard.is_held());
        soon(guard.release()).await.unwrap();
        soon(client.close()).await;
    }

    async fn nodes_belong_to_the_user_who_created_them(backend: Backend) {
        let server = closed(backend).await;
        let (me, you) = (connect(&server, "me").await, connect(&server, "you").await);
        me.create("/a", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(me.acl("/a").await.unwrap().entries, [Acl::new(Permissions::ALL, "sasl", "me")]);
        assert_eq!(you.get("/a").await.unwrap_err().kind(), ErrorKind::NoAuth);
        me.set_acl("/a", [Acl::new(Permissions::ALL, "sasl", "you")], None).await.unwrap();
        you.get("/a").await.unwrap();
        assert_eq!(me.get("/a").await.unwrap_err().kind(), ErrorKind::NoAuth);
    }

    async fn a_wrong_user_or_password_is_an_error_immediately(backend: Backend) {
        let server = closed(backend).await;
        for (user, password) in [("me", "wrong-secret"), ("stranger", "other"), ("me", "")] {
            let error = soon(of(&server, user, password).connect()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AuthFailed);
            let text = format!("{error} {error:?}");
            assert!(text.contains("wrong user or password") && !text.contains("wrong-secret"), "{text}");
        }
        let client = of(&server, "me", "wrong").build().unwrap();
        assert_eq!(soon(client.get("/")).await.unwrap_err().kind(), ErrorKind::AuthFailed);
        assert_eq!(client.state().current().state, ConnectionState::AuthFailed);
        soon(client.close()).await;
    }

    async fn a_client_without_sasl_is_refused_by_servers_that_require_it(backend: Backend) {
        let server = closed(backend).await;
        let client = builder(&server, server.connect_string()).build().unwrap();
        assert_eq!(soon(client.get("/")).await.unwrap_err().kind(), ErrorKind::AuthFailed);
        soon(client.close()).await;
    }

    async fn servers_without_sasl_are_reported_immediately(backend: Backend) {
        let server = backend.start().await;
        let error = soon(of(&server, "me", "right").connect()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AuthFailed);
        assert!(error.to_string().contains("does not offer SASL"), "{error}");
    }

    async fn a_link_that_is_lost_during_the_authentication_is_replaced(backend: Backend) {
        let server = closed(backend).await;
        for step in 1..=2 {
            for rule in [
                Rule::on(OpCode::Sasl).nth(step).reset_before(),
                Rule::on(OpCode::Sasl).nth(step).reset_after(),
                Rule::on(OpCode::Sasl).nth(step).swallow_reply(),
            ] {
                let armed = server.front().add(rule);
                let client = connect(&server, "me").await;
                assert!(armed.has_fired(), "step {step}");
                client.exists("/a").await.unwrap();
                let armed = server.front().add(Rule::on(OpCode::Sasl).nth(step).reset_after());
                server.front().reset().await;
                soon(client.exists("/a")).await.unwrap();
                assert!(armed.has_fired() && client.state().current().generation == 1);
                soon(client.close()).await;
            }
        }
    }

    async fn a_session_that_was_given_up_is_closed_on_servers_that_require_sasl(backend: Backend) {
        let server = closed(backend).await;
        let client = connect(&server, "me").await;
        client.create("/e", "", CreateMode::Ephemeral).await.unwrap();
        // The reply to the close request is lost, and so are the links on which the client repeats it.
        let armed = server.front().add(Rule::on(OpCode::CloseSession).reset_before());
        soon(client.close()).await;
        assert!(armed.has_fired());
        let observer = connect(&server, "me").await;
        soon(async {
            while observer.exists("/e").await.unwrap().is_some() {
                pause().await;
            }
        })
        .await;
    }

    async fn sasl_and_digest_authenticate_the_same_client(backend: Backend) {
        let server = closed(backend).await;
        let both = of(&server, "me", "right").auth_digest("user", "word").allow_plaintext_auth();
        let client = soon(both.connect()).await.unwrap();
        let proved = client.who_am_i().await.unwrap();
        let mut schemes: Vec<_> = proved.iter().map(|one| &*one.scheme).collect();
        schemes.sort_unstable();
        assert_eq!(schemes, ["digest", "ip", "sasl"]);
    }

    async fn optional_sasl_admits_both_kinds_of_clients(backend: Backend) {
        let server = backend.start_own_with(ServerOptions::default().sasl_user("me", "right")).await;
        let open = soon(builder(&server, server.connect_string()).connect()).await.unwrap();
        let me = connect(&server, "me").await;
        me.create("/a", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(open.get("/a").await.unwrap_err().kind(), ErrorKind::NoAuth);
    }
}
