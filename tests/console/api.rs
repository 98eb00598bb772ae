//! The console without a browser: the API and its schema, hidden data, routers that are mounted, and ends.

use crate::world::{Shop, watcher};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode, header};
use docent::discovery::RegistryLayout;
use docent::locks::Partitioner;
use docent::{Client, Counter, Instance, Membership, Mutex, Registry};
use docent_battery::{Backend, both_backends};
use docent_console::{Console, ConsoleBuilder};
use docent_tests::{builder, soon, until};
use futures_util::StreamExt;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tower::ServiceExt;

/// Routes of a console, once it has read the tree.
async fn console(client: &Client, set_up: impl FnOnce(ConsoleBuilder) -> ConsoleBuilder) -> Router {
    let router = set_up(Console::builder(client)).build().unwrap().router();
    until(async || text(&router, "/readyz").await.0 == StatusCode::OK).await;
    router
}

async fn request(router: &Router, path: &str) -> Response<Body> {
    let request = Request::get(path).header(header::HOST, "localhost").body(Body::empty()).unwrap();
    soon(router.clone().oneshot(request)).await.unwrap()
}

async fn text(router: &Router, path: &str) -> (StatusCode, String) {
    let (parts, body) = request(router, path).await.into_parts();
    let bytes = soon(to_bytes(body, usize::MAX)).await.unwrap();
    (parts.status, String::from_utf8(bytes.to_vec()).unwrap())
}

async fn json(router: &Router, path: &str) -> Value {
    let (status, text) = text(router, path).await;
    assert_eq!(status, StatusCode::OK, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

/// States of the servers, in the order of the connect string.
async fn states(router: &Router) -> Vec<String> {
    let ensemble = json(router, "/api/v1/ensemble").await;
    let servers = ensemble["servers"].as_array().unwrap();
    servers.iter().map(|server| server["state"].as_str().unwrap().to_owned()).collect()
}

/// Returns the number of findings of a kind.
async fn findings(router: &Router, kind: &str) -> u64 {
    let metrics = text(router, "/metrics").await.1;
    let name = format!("docent_console_findings{{finding=\"{kind}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
}

both_backends! {
    async fn a_lock_that_is_held_for_long_is_a_finding_and_a_partition_is_not(backend: Backend) {
        let server = backend.start().await;
        let (client, watcher) = (watcher(&server).await, watcher(&server).await);
        let partitioner = Partitioner::builder(&client, "/p", ["a", "b"]).settle(Duration::ZERO).join().unwrap();
        let share = soon(partitioner.acquire()).await.unwrap();
        let router = console(&watcher, |builder| builder.holder_age(Duration::ZERO)).await;
        until(async || json(&router, "/api/v1/recipes?kind=partition").await["total"] == 1).await;
        assert_eq!(findings(&router, "old_holder").await, 0);
        let lock = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        until(async || findings(&router, "old_holder").await == 1).await;
        drop((lock, share));
    }

    async fn answers_of_the_api_match_the_published_schema(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let router = console(&shop.console, |builder| builder).await;
        let schema = json(&router, "/api/v1/schema.json").await;
        let part = |name: &str| {
            let mut schema = schema.clone();
            let object = schema.as_object_mut().unwrap();
            object.remove("anyOf");
            object.insert("$ref".to_owned(), format!("#/$defs/{name}").into());
            jsonschema::validator_for(&schema).unwrap()
        };
        let check = |name: &str, answer: &Value| {
            let faults: Vec<_> = part(name).iter_errors(answer).map(|fault| format!("{fault} at {}", fault.instance_path())).collect();
            assert!(faults.is_empty(), "{name}: {faults:#?} in {answer:#}");
        };
        let recipes = json(&router, "/api/v1/recipes").await;
        check("recipes", &recipes);
        let kinds: Vec<_> = recipes["recipes"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap()).collect();
        for kind in ["mutex", "read_write_lock", "semaphore", "election", "queue", "service", "registry", "membership", "config"] {
            assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
        }
        assert_eq!(recipes["total"], kinds.len());
        check("report", &json(&router, "/api/v1/at/shop/report").await);
        check("report", &json(&router, "/api/v1/at/shop").await);
        check("sessions", &json(&router, "/api/v1/sessions").await);
        until(async || states(&router).await == ["serving"]).await;
        let ensemble = json(&router, "/api/v1/ensemble").await;
        check("ensemble", &ensemble);
        assert_eq!(ensemble["servers"][0]["mode"], "standalone");
        let (status, missing) = text(&router, "/api/v1/at/shop/nothing").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        check("error", &serde_json::from_str(&missing).unwrap());
        // The schema refuses what it should.
        assert!(!part("ensemble").is_valid(&serde_json::json!({ "servers": [{}] })));
        assert!(!part("recipes").is_valid(&serde_json::json!({ "root": "/", "is_stale": false, "total": 1, "recipes": [{}] })));
    }

    async fn filters_select_and_sort_recipes(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let router = console(&shop.console, |builder| builder).await;
        let paths = async |query: &str| -> Vec<String> {
            let found = json(&router, &format!("/api/v1/recipes?{query}")).await;
            found["recipes"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(paths("kind=mutex").await, ["/shop/report"]);
        assert_eq!(paths("q=HOST-2&kind=election").await, ["/shop/leader"]);
        assert_eq!(paths("q=billing&kind=queue").await, ["/shop/jobs"]);
        assert!(paths("older=1000h").await.is_empty());
        assert_eq!(paths("from=1000").await, [""; 0]);
        let (status, error) = text(&router, "/api/v1/recipes?older=soon").await;
        assert!(status == StatusCode::BAD_REQUEST && error.contains("soon") && error.contains("10m"), "{error}");
        let (status, page) = text(&router, "/locks?older=soon").await;
        assert!(status == StatusCode::OK && page.contains("soon") && page.contains("/shop/report"), "{page}");
    }

    async fn hidden_data_is_on_no_page(backend: Backend) {
        const SECRET: &str = "secret-7";
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let group = Membership::new(&shop.billing, "/shop/group").unwrap();
        let _member = soon(group.join("host-7", SECRET)).await.unwrap();
        soon(Counter::<i64>::new(&shop.billing, "/shop/count").unwrap().set(77_777)).await.unwrap();
        let pages = [
            "/", "/members", "/tree", "/tree?sort=owner", "/sessions", "/config", "/services", "/at/shop/group", "/at/shop/count",
            "/at/services/orders", "/at/shop/jobs", "/api/v1/recipes", "/api/v1/sessions", "/api/v1/at/shop/group",
            "/api/v1/at/shop/count", "/data?path=/shop/limits", "/data?path=/shop/group/host-7", "/tree?q=secret-7", "/act?do=delete&path=/shop/group&node=host-7",
        ];
        let hidden = ["zone-a", "no such customer", "77777"];
        let open = console(&shop.console, |builder| builder).await;
        let mut shown = String::new();
        for page in pages {
            shown.push_str(&text(&open, page).await.1);
        }
        assert!(hidden.iter().chain([&SECRET]).all(|text| shown.contains(text)), "the test sees what is shown");
        let closed = console(&shop.console, |builder| builder.hide_data().allow_actions()).await;
        for page in pages {
            let (_, text) = text(&closed, page).await;
            assert!(!hidden.iter().any(|hidden| text.contains(hidden)), "{page}: {text}");
            // The text that was searched for is on the page.
            assert!(page.contains(SECRET) || !text.contains(SECRET), "{page}: {text}");
        }
        assert_eq!(text(&closed, "/data?path=/shop/limits").await.0, StatusCode::FORBIDDEN);
    }

    async fn only_what_is_below_the_root_is_shown(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let router = console(&shop.console, |builder| builder.root("/shop").allow_actions()).await;
        let paths = json(&router, "/api/v1/recipes").await;
        assert!(paths["recipes"].as_array().unwrap().iter().all(|it| it["path"].as_str().unwrap().starts_with("/shop/")));
        for path in ["/at/services/orders", "/data?path=/services/orders/a", "/nodes?path=/", "/diff?path=/services&from=1", "/api/v1/at/services", "/nodes?path=/shopping"] {
            assert_eq!(text(&router, path).await.0, StatusCode::FORBIDDEN, "{path}");
        }
        let (status, page) = text(&router, "/act?do=disable&path=/services/orders&node=a").await;
        assert!(status == StatusCode::BAD_REQUEST && page.contains("not below /shop"), "{page}");
        assert!(Console::builder(&shop.console).root("shop").build().is_err());
    }

    async fn a_registry_leads_to_services_whose_names_are_encoded(backend: Backend) {
        let server = backend.start().await;
        let (client, watcher) = (watcher(&server).await, watcher(&server).await);
        let registry = Registry::builder(&client, "/dubbo").layout(RegistryLayout::Dubbo).build().unwrap();
        let provider = Instance::new("com.shop.Orders$Inner", "10.0.0.7", 20880);
        let _registered = soon(registry.register(provider)).await.unwrap();
        let router = console(&watcher, |builder| builder).await;
        until(async || json(&router, "/api/v1/recipes?kind=service").await["total"] == 1).await;
        let page = text(&router, "/at/dubbo").await.1;
        assert!(page.contains("com.shop.Orders$Inner"), "{page}");
        let link = page.split('"').find(|part| part.starts_with("/at/dubbo/")).unwrap();
        let (status, service) = text(&router, link).await;
        assert!(status == StatusCode::OK && service.contains("10.0.0.7:20880"), "{link}: {service}");
    }

    async fn a_server_that_stops_is_shown_as_down_and_is_a_finding(backend: Backend) {
        let server = backend.start().await;
        let other = server.proxy().await;
        let name = other.connect_string();
        let client = builder(&server, format!("{},{name}", server.connect_string()));
        let client = soon(client.connect()).await.unwrap();
        let router = console(&client, |builder| builder).await;
        until(async || states(&router).await == ["serving", "serving"]).await;
        let page = text(&router, "/").await.1;
        assert!(page.contains("standalone") && !page.contains("is down"), "{page}");

        drop(other);
        until(async || states(&router).await == ["serving", "down"]).await;
        let page = text(&router, "/").await.1;
        assert!(page.contains(&format!("server {name} is down: ")), "{page}");
        let metrics = text(&router, "/metrics").await.1;
        for line in [
            "docent_console_servers{state=\"serving\"} 1",
            "docent_console_servers{state=\"down\"} 1",
            "docent_console_findings{finding=\"server_down\"} 1",
        ] {
            assert!(metrics.lines().any(|one| one == line), "{line}: {metrics}");
        }

        // A server that the client has no longer is forgotten.
        client.update_servers(&server.connect_string()).unwrap();
        until(async || text(&router, "/metrics").await.1.contains("docent_console_servers{state=\"down\"} 0")).await;
        assert_eq!(states(&router).await, ["serving"]);
    }

    async fn all_addresses_of_a_mounted_console_work(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let router = console(&shop.console, |builder| builder.base("/console/")).await;
        let mounted = [Router::new().nest("/console", router.clone()), Router::new().nest_service("/console", router)];
        for app in mounted {
            for page in ["/console", "/console/locks", "/console/at/shop/report", "/console/at/shop"] {
                let (status, html) = text(&app, page).await;
                assert_eq!(status, StatusCode::OK, "{page}");
                let addresses = html.split(['"']).filter(|part| part.starts_with('/') && !part.contains(' '));
                let addresses: Vec<_> = addresses.filter(|address| !address.contains("/events")).collect();
                assert!(addresses.len() > 10, "{html}");
                for address in addresses {
                    let address = address.replace("&amp;", "&");
                    let status = request(&app, &address).await.status();
                    assert!(status.is_success() || status.is_redirection(), "{page}: {address}: {status}");
                }
            }
        }
    }

    async fn pages_end_with_the_client_and_say_so(backend: Backend) {
        let server = backend.start().await;
        let client = watcher(&server).await;
        let router = console(&client, |builder| builder).await;
        let mut events = request(&router, "/events?view=%2F").await.into_body().into_data_stream();
        let first = soon(events.next()).await.unwrap().unwrap();
        assert!(first.starts_with(b"event: patch\ndata: {"), "{first:?}");
        client.close().await;
        let rest = soon(events.map(|event| String::from_utf8(event.unwrap().to_vec()).unwrap()).collect::<String>()).await;
        assert!(rest.contains("Closed"), "{rest}");
        assert_eq!(text(&router, "/readyz").await.0, StatusCode::SERVICE_UNAVAILABLE);
        assert!(text(&router, "/metrics").await.1.contains("docent_console_up_to_date 0"));
    }
}

#[tokio::test]
async fn servers_without_quorum_or_answer_are_findings_and_one_without_words_is_not() {
    let server = Backend::Embedded.start().await;
    let quorum = answering("This ZooKeeper instance is not currently serving requests\n").await;
    let wordless = answering("srvr is not executed because it is not in the whitelist.\n").await;
    // The system accepts connections, which are never answered.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hung = listener.local_addr().unwrap();
    let client = builder(&server, format!("{},{quorum},{wordless},{hung}", server.connect_string()));
    let client = soon(client.connect()).await.unwrap();
    let router = console(&client, |builder| builder).await;
    until(async || states(&router).await == ["serving", "no_quorum", "words_off", "foreign"]).await;
    let page = text(&router, "/").await.1;
    assert!(page.contains(&format!("server {quorum} has no quorum")), "{page}");
    assert!(page.contains(&format!("server {hung} does not answer as ZooKeeper does: no answer")), "{page}");
    assert!(page.contains("does not report: four-letter words are disabled"), "{page}");
    let metrics = text(&router, "/metrics").await.1;
    for line in [
        "docent_console_findings{finding=\"no_quorum\"} 1",
        "docent_console_findings{finding=\"server_down\"} 1",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}: {metrics}");
    }
}

/// Starts a server that answers each connection with this text.
async fn answering(text: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // The client may have closed the connection already.
            let _ = stream.write_all(text.as_bytes()).await;
        }
    });
    address
}
