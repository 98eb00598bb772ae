//! Settings of a client from text and from environment variables.

use docent::node::Acl;
use docent::{Client, CreateMode, Error, Options};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_tests::soon;
use std::fs;
use std::time::Duration;

fn from_vars(vars: &[(&str, &str)]) -> Result<Options, Error> {
    Options::from_vars(vars.iter().copied())
}

#[test]
fn a_text_and_variables_give_the_same_settings() {
    let json = r#"{
        "connect": "zk1:2181,zk2/shop", "namespace": "/eu", "label": "tills", "identity": "till-7", "session_timeout": "30s",
        "operation_timeout": 5, "server_tick": "1500ms", "credentials_file": "/run/zk", "sasl_credentials_file": "/run/sasl",
        "sasl_gssapi": true, "sasl_service": "zk", "sasl_server_principal": "zk/all@EXAMPLE.ORG",
        "allow_plaintext_auth": true, "tls_ca_file": "ca.pem", "tls_cert_file": "c.pem",
        "tls_key_file": "c.key", "tls_server_name": "zk.example.org", "dedicated_thread": true, "track_ensemble": true,
        "parents": "persistent"
    }"#;
    let read: Options = serde_json::from_str(json).unwrap();
    assert_eq!(read.label.as_deref(), Some("tills"));
    assert_eq!(read.session_timeout, Some(Duration::from_secs(30)));
    assert_eq!(read.operation_timeout, Some(Duration::from_secs(5)));
    assert_eq!(read.server_tick, Some(Duration::from_millis(1_500)));
    let vars = [
        ("HOME", "/"),
        ("DOCENT_CONNECT", "zk1:2181,zk2/shop"),
        ("DOCENT_NAMESPACE", "/eu"),
        ("DOCENT_LABEL", "tills"),
        ("DOCENT_IDENTITY", "till-7"),
        ("DOCENT_SESSION_TIMEOUT", "30s"),
        ("DOCENT_OPERATION_TIMEOUT", "5"),
        ("DOCENT_SERVER_TICK", "1.5s"),
        ("DOCENT_CREDENTIALS_FILE", "/run/zk"),
        ("DOCENT_SASL_CREDENTIALS_FILE", "/run/sasl"),
        ("DOCENT_SASL_GSSAPI", "true"),
        ("DOCENT_SASL_SERVICE", "zk"),
        ("DOCENT_SASL_SERVER_PRINCIPAL", "zk/all@EXAMPLE.ORG"),
        ("DOCENT_ALLOW_PLAINTEXT_AUTH", "true"),
        ("DOCENT_TLS_CA_FILE", "ca.pem"),
        ("DOCENT_TLS_CERT_FILE", "c.pem"),
        ("DOCENT_TLS_KEY_FILE", "c.key"),
        ("DOCENT_TLS_SERVER_NAME", "zk.example.org"),
        ("DOCENT_DEDICATED_THREAD", "true"),
        ("DOCENT_TRACK_ENSEMBLE", "true"),
        ("DOCENT_PARENTS", "persistent"),
    ];
    assert_eq!(from_vars(&vars).unwrap(), read);
    // Unknown variables, set by Kubernetes or misspelled, are logged.
    let more = [("DOCENT_CONNECT", "zk1"), ("DOCENT_SERVICE_HOST", "10.0.0.1"), ("DOCENT_NAMESPACE", "")];
    assert_eq!(from_vars(&more).unwrap(), Options::new("zk1"));
    assert_eq!(
        serde_json::from_str::<Options>(r#"{"connect":"zk1","session_timeout":null}"#).unwrap(),
        Options::new("zk1")
    );
}

#[test]
fn what_is_refused_is_named_with_its_value_and_the_rule() {
    let duration = "must be a number of seconds, or a number with ms, s, m or h, as in \"1500ms\" or \"30s\"";
    for (json, text) in [
        (
            r#"{"connect":"zk1","sesion_timeout":1}"#,
            "unknown field `sesion_timeout`, expected one of `connect`".to_owned(),
        ),
        (r#"{"namespace":"/a"}"#, "missing field `connect`".to_owned()),
        (
            r#"{"connect":"zk1","session_timeout":"30x"}"#,
            format!("session_timeout: duration \"30x\" {duration}"),
        ),
        (r#"{"connect":"zk1","server_tick":-1}"#, format!("server_tick: duration -1 {duration}")),
        (
            r#"{"connect":"zk1","operation_timeout":true}"#,
            "operation_timeout: invalid type: boolean `true`, expected a number of seconds".to_owned(),
        ),
    ] {
        let error = serde_json::from_str::<Options>(json).unwrap_err().to_string();
        assert!(error.contains(&text), "{error}");
    }
    let connect = ("DOCENT_CONNECT", "zk1");
    for (vars, text) in [
        (
            vec![("HOME", "/")],
            "options: DOCENT_CONNECT must be set to the servers, such as \"zk1:2181,zk2:2181/shop\""
                .to_owned(),
        ),
        (
            vec![connect, ("DOCENT_SESSION_TIMEOUT", "30x")],
            format!("options: DOCENT_SESSION_TIMEOUT \"30x\" {duration}"),
        ),
        (
            vec![connect, ("DOCENT_PARENTS", "Container")],
            "options: DOCENT_PARENTS \"Container\" must be \"container\" or \"persistent\"".to_owned(),
        ),
        (
            vec![connect, ("DOCENT_DEDICATED_THREAD", "yes")],
            "options: DOCENT_DEDICATED_THREAD \"yes\" must be \"true\" or \"false\"".to_owned(),
        ),
    ] {
        assert_eq!(from_vars(&vars).unwrap_err().to_string(), text);
    }
    let refused = |change: fn(&mut Options)| {
        let mut options = Options::new("zk1");
        change(&mut options);
        options.builder().unwrap_err().to_string()
    };
    assert_eq!(
        refused(|options| options.connect = "a:0".into()),
        "connect: connect string \"a:0\" has the server \"a:0\", which must have a port from 1 to 65535 after its ':', or no \
         ':' for port 2181"
    );
    let rule = "must be an absolute path without a trailing slash, such as \"/shop\"";
    assert_eq!(
        refused(|options| options.namespace = Some("shop".into())),
        format!("options: namespace \"shop\" {rule}")
    );
    assert_eq!(
        refused(|options| options.tls_key_file = Some("k".into())),
        "options: tls_key_file \"k\" must come with tls_ca_file"
    );
    for (change, text) in [
        (
            (|options| options.sasl_service = Some("zk".into())) as fn(&mut Options),
            "sasl_service \"zk\" must come with sasl_gssapi",
        ),
        (
            |options| options.sasl_server_principal = Some("zk/all".into()),
            "sasl_server_principal \"zk/all\" must come with sasl_gssapi",
        ),
        (
            |options| (options.sasl_gssapi, options.sasl_credentials_file) = (true, Some("/run/sasl".into())),
            "sasl_credentials_file \"/run/sasl\" must not come with sasl_gssapi",
        ),
        (
            |options| {
                (options.sasl_gssapi, options.sasl_service) = (true, Some("zk".into()));
                options.sasl_server_principal = Some("zk/all".into());
            },
            "sasl_service \"zk\" must not come with sasl_server_principal \"zk/all\"",
        ),
    ] {
        assert_eq!(refused(change), format!("options: {text}"));
    }
    let half = refused(|options| {
        (options.tls_ca_file, options.tls_key_file) = (Some("ca".into()), Some("k".into()));
    });
    assert_eq!(half, "options: tls_key_file \"k\" must come with tls_cert_file");
    let missing = refused(|options| options.credentials_file = Some("/no/such".into()));
    assert!(missing.starts_with("options: credentials_file \"/no/such\" must be readable: "), "{missing}");
}

#[test]
fn no_secret_of_a_file_or_a_connect_string_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials");
    let mut options = Options::new("zk1");
    options.credentials_file = Some(file.clone());
    for bad in ["planted", "user:planted\nplanted", ":planted", ""] {
        fs::write(&file, bad).unwrap();
        let error = options.builder().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("options: credentials_file {file:?} must be one line of user:password")
        );
        assert!(!format!("{error:?}").contains("planted"));
    }
    fs::write(&file, "x".repeat(70_000)).unwrap();
    let rule = "must have at most 65536 bytes, and has 70000";
    assert_eq!(
        options.builder().unwrap_err().to_string(),
        format!("options: credentials_file {file:?} {rule}")
    );
    fs::write(&file, "user:planted\n").unwrap();
    let printed = format!("{options:?} {:?}", options.builder().unwrap());
    assert!(!printed.contains("planted") && printed.contains("credentials_file"), "{printed}");
    let printed = format!("{:?}", Options::new("user:planted@zk1"));
    assert!(!printed.contains("planted"), "{printed}");
}

both_backends_in_real_time! {
    async fn a_client_is_built_from_a_text_and_a_file_of_credentials(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        fs::write(&file, "user:secret:with:colons\n").unwrap();
        let connect = format!("{}{}", server.connect_string(), server.root());
        let json = serde_json::json!({
            "connect": connect, "namespace": "/eu", "identity": "till-7", "session_timeout": "8s",
            "operation_timeout": 30, "credentials_file": file, "allow_plaintext_auth": true,
        });
        let options: Options = serde_json::from_value(json).unwrap();
        let client = soon(options.builder().unwrap().connect()).await.unwrap();
        assert_eq!(client.identity(), "till-7");
        soon(client.create("/own", "", CreateMode::Persistent)).await.unwrap();
        let acl = soon(client.acl("/own")).await.unwrap().entries;
        let digest = Acl::digest("user", "secret:with:colons", docent::node::Permissions::ALL);
        assert_eq!(acl, [digest]);
        let vars = [("DOCENT_CONNECT", connect.as_str()), ("DOCENT_SESSION_TIMEOUT", "8s")];
        let other = soon(from_vars(&vars).unwrap().builder().unwrap().connect()).await.unwrap();
        assert!(soon(other.exists("/eu/own")).await.unwrap().is_some());
        assert!(soon(Client::connect(&connect)).await.unwrap().exists("/eu").await.unwrap().is_some());
    }
}
