//! Actions: who may carry them out, and on what.

use crate::browser::Browser;
use crate::site::Site;
use crate::world::Shop;
use axum::Router;
use axum::response::Html;
use axum::routing::get;
use docent::discovery::{Registry, RegistryLayout, Service};
use docent::{CreateMode, Instance, Mutex};
use docent_battery::{Backend, both_backends_with_packages};
use docent_tests::{soon, until};
use serde_json::Value;

/// The action that deletes the first waiter.
const DELETE_WAITER: &str = ".is-waiter a.action[href*='do=delete']";

/// Fields of the form of a confirmation, encoded as its submission is.
const FIELDS: &str =
    "return new URLSearchParams(new FormData(document.querySelector('form.confirm'))).toString()";

/// Opens the page of the lock with its three contenders.
async fn open_lock(browser: &Browser) {
    browser.open("/at/shop/report").await;
    browser.until_texts(".contender", |all| all.len() == 3).await;
}

/// Opens the confirmation of the deletion of the first waiter, and returns the waiter's node.
async fn ask_to_delete(browser: &Browser) -> String {
    open_lock(browser).await;
    let node = browser.eval("return document.querySelector('.is-waiter .owner').title").await;
    browser.click(DELETE_WAITER).await;
    browser.until("return document.querySelector('form.confirm .danger') !== null").await;
    node.as_str().unwrap().to_owned()
}

/// Checks that the nodes of the lock are those three.
async fn until_unchanged(shop: &Shop, before: &[String]) {
    assert_eq!(nodes(shop).await, before);
}

async fn nodes(shop: &Shop) -> Vec<String> {
    let mut names = soon(shop.console.children("/shop/report")).await.unwrap().names;
    names.sort_unstable();
    names
}

/// Confirms what the page asks, and waits for the answer.
async fn confirm(browser: &Browser) {
    browser.click(".confirm .danger").await;
    browser.until("return document.querySelector('form.confirm') === null").await;
}

/// Posts a form from a script of the current page, and returns the status.
async fn post(browser: &Browser, body: &str) -> u64 {
    let script = "const done = arguments[arguments.length - 1];
        const headers = { 'content-type': 'application/x-www-form-urlencoded' };
        fetch('/act', { method: 'POST', headers, body: arguments[0] })
            .then(reply => done(reply.status), error => done(String(error)))";
    let status = browser.eval_async(script, &[body.into()]).await;
    status.as_u64().unwrap_or_else(|| panic!("{status}"))
}

/// A site whose page posts a form to the console.
fn foreign_site(console: &Site, fields: &str) -> Site {
    let inputs: String = fields
        .split('&')
        .filter_map(|field| field.split_once('='))
        .map(|(name, value)| format!("<input name='{name}' value=\"{value}\">"))
        .collect();
    let action = format!("{}/act", console.origin());
    let page = format!(
        "<!doctype html><title>Prizes</title>
        <form method=post action='{action}'>{inputs}<button>Win</button></form>
        <script>document.querySelectorAll('input').forEach(input => {{
            input.value = decodeURIComponent(input.value.replace(/\\+/g, ' '))
        }})</script>
        <iframe src='{}/locks'></iframe>",
        console.origin()
    );
    Site::serve(Router::new().route("/", get(async move || Html(page))))
}

both_backends_with_packages! {
    async fn actions_are_neither_offered_nor_done_without_the_flag(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let (allowing, refusing) = (
            Site::console(&shop.console, docent_console::ConsoleBuilder::allow_actions),
            Site::console(&shop.console, |builder| builder),
        );
        let before = nodes(&shop).await;
        let browser = Browser::start(&allowing.origin()).await;
        ask_to_delete(&browser).await;
        let (fields, ask) = (browser.eval(FIELDS).await, browser.location().await);

        browser.open_url(&format!("{}/at/shop/report", refusing.origin())).await;
        browser.until_texts(".contender", |all| all.len() == 3).await;
        assert_eq!(browser.texts("a.action").await, [""; 0]);
        assert_eq!(post(&browser, fields.as_str().unwrap()).await, 403);
        browser.open_url(&format!("{}{ask}", refusing.origin())).await;
        assert_eq!((browser.status().await, browser.texts("form.confirm").await), (403, Vec::new()));
        until_unchanged(&shop, &before).await;
    }

    async fn an_action_names_its_node_asks_once_and_is_done(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let site = Site::console(&shop.console, docent_console::ConsoleBuilder::allow_actions);
        let before = nodes(&shop).await;
        let browser = Browser::start(&site.origin()).await;
        let node = ask_to_delete(&browser).await;
        let text = browser.text("main").await.unwrap();
        assert!(text.contains(&format!("/shop/report/{node}")), "{text}");
        browser.click("a.cancel").await;
        browser.until("return location.pathname !== '/act'").await;
        until_unchanged(&shop, &before).await;

        ask_to_delete(&browser).await;
        confirm(&browser).await;
        // The waiter may have joined the line again, under another name.
        assert!(!nodes(&shop).await.contains(&node));

        shop.add_instance("m").await;
        // The client of `a` keeps its node present, and writes it again as the operator wants it. No client
        // does so for `m`.
        for (instance, writes) in [("a", 2), ("m", 1)] {
            let steps = [("disable", "enabled", "disabled"), ("enable", "disabled", "enabled")];
            for (step, (action, before, after)) in (1..).zip(steps) {
                browser.open("/at/services/orders").await;
                browser.until_row(instance, &[before]).await;
                browser.click(&format!("a.action[href*='do={action}'][href$='node={instance}']")).await;
                confirm(&browser).await;
                let path = format!("/services/orders/{instance}");
                until(async || {
                    let stat = shop.console.exists(&path).await.unwrap().unwrap();
                    stat.version == step * writes
                })
                .await;
                browser.open("/at/services/orders").await;
                browser.until_row(instance, &[after]).await;
                assert_eq!(shop.orders.is_disabled_by_operator(), instance == "a" && action == "disable");
            }
        }

        browser.open("/at/shop/jobs").await;
        browser.until_row("", &["no such customer"]).await;
        browser.click("a.action[href*='do=requeue']").await;
        confirm(&browser).await;
        browser.open("/at/shop/jobs").await;
        browser.until_text("#facts", |text| text.contains("Items 3") && text.contains("Dead letters 0")).await;

        browser.open("/at/shop/limits").await;
        browser.click("a.action[href*='do=rollback']").await;
        confirm(&browser).await;
        browser.open("/at/shop/limits").await;
        browser.until_text("#facts", |text| text.contains("Version 2")).await;
        assert_eq!(soon(shop.console.get("/shop/limits")).await.unwrap().data, r#"{"burst":1,"limit":10}"#);

        browser.open("/at/shop/report").await;
        browser.click(".is-holder a.action[href*='do=leave']").await;
        confirm(&browser).await;
        browser.open("/at/shop/report").await;
        browser.until_text(".is-holder .role", |role| role == "holds, asked to leave").await;
    }

    async fn an_instance_in_dubbos_layout_is_disabled_by_a_rule(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let site = Site::console(&shop.console, docent_console::ConsoleBuilder::allow_actions);
        let registry = Registry::builder(&shop.billing, "/dubbo").layout(RegistryLayout::Dubbo).build().unwrap();
        let instance = Instance::new("com.shop.Orders", "10.0.0.7", 20880);
        let registration = soon(registry.register(instance)).await.unwrap();
        let view: Service = soon(registry.service("com.shop.Orders")).await.unwrap();
        let browser = Browser::start(&site.origin()).await;
        for (action, before, after) in [("disable", "enabled", "disabled"), ("enable", "disabled", "enabled")] {
            browser.open("/at/dubbo/com.shop.Orders").await;
            browser.until_row("", &["10.0.0.7", before]).await;
            browser.click(&format!("a.action[href*='do={action}']")).await;
            confirm(&browser).await;
            browser.until_row("", &["10.0.0.7", after]).await;
            let rules = shop.console.children("/dubbo/com.shop.Orders/configurators").await.unwrap().names;
            assert_eq!(rules.len(), usize::from(action == "disable"));
            let wanted = |text: &str| text.contains("override://10.0.0.7:20880/") == (action == "disable");
            browser.until_text("#rules", wanted).await;
            // Callers follow the rule.
            until(async || view.pick().is_ok() == (action == "enable")).await;
        }
        // A rule can be deleted without an instance that it concerns.
        let other = "override%3A%2F%2F10.0.0.9%3A20880%2Fcom.shop.Orders%3Fdisabled%3Dtrue";
        let path = format!("/dubbo/com.shop.Orders/configurators/{other}");
        shop.console.create(&path, "", CreateMode::Persistent).await.unwrap();
        browser.until_text("#rules", |text| text.contains("override://10.0.0.9:20880/")).await;
        browser.click("#rules a.action").await;
        confirm(&browser).await;
        assert_eq!(soon(shop.console.exists(&path)).await.unwrap(), None);
        browser.open("/at/dubbo/com.shop.Orders").await;
        browser.until_row("", &["10.0.0.7", "enabled"]).await;
        // The instance is deleted between question and answer.
        browser.click("a.action[href*='do=disable']").await;
        browser.until("return document.querySelector('form.confirm .danger') !== null").await;
        soon(registration.deregister()).await.unwrap();
        confirm(&browser).await;
        assert_eq!(browser.status().await, 409);
        let rules = shop.console.children("/dubbo/com.shop.Orders/configurators").await.unwrap().names;
        assert!(rules.is_empty(), "{rules:?}");
    }

    async fn an_action_with_a_wrong_token_is_refused(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let site = Site::console(&shop.console, docent_console::ConsoleBuilder::allow_actions);
        let before = nodes(&shop).await;
        let browser = Browser::start(&site.origin()).await;
        for script in [
            "document.querySelector('.confirm [name=csrf]').value += 'x'",
            "document.querySelector('.confirm [name=csrf]').value = ''",
            "document.querySelector('.confirm [name=csrf]').remove()",
        ] {
            ask_to_delete(&browser).await;
            browser.eval(script).await;
            confirm(&browser).await;
            let status = browser.status().await;
            assert!([400, 403, 422].contains(&status), "{status}");
            until_unchanged(&shop, &before).await;
        }
        // A token of another browser is wrong, too.
        ask_to_delete(&browser).await;
        let fields = browser.eval(FIELDS).await;
        browser.forget_cookies().await;
        browser.open("/locks").await;
        assert_eq!(post(&browser, fields.as_str().unwrap()).await, 403);
        until_unchanged(&shop, &before).await;
    }

    async fn an_action_from_another_site_is_refused(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let site = Site::console(&shop.console, docent_console::ConsoleBuilder::allow_actions);
        let before = nodes(&shop).await;
        let browser = Browser::start(&site.origin()).await;
        ask_to_delete(&browser).await;
        // Even with the right token.
        let Value::String(fields) = browser.eval(FIELDS).await else { panic!("no fields") };
        let foreign = foreign_site(&site, &fields);
        for host in ["localhost", "127.0.0.1"] {
            browser.open_url(&foreign.origin_at(host)).await;
            // The page cannot lie in a frame, under a click that is meant for something else.
            let errors = browser.errors().await;
            assert!(errors.iter().any(|error| error.contains("frame-ancestors")), "{errors:?}");
            browser.click("button").await;
            browser.until("return location.pathname === '/act'").await;
            assert_eq!(browser.status().await, 403);
            until_unchanged(&shop, &before).await;
        }
    }

    async fn an_action_on_a_node_that_has_changed_is_refused(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let site = Site::console(&shop.console, docent_console::ConsoleBuilder::allow_actions);
        let browser = Browser::start(&site.origin()).await;

        browser.open("/at/services/orders").await;
        browser.until_row("a", &["enabled"]).await;
        browser.click("a.action[href*='do=disable']").await;
        browser.until("return document.querySelector('form.confirm .danger') !== null").await;
        for enabled in [false, true] {
            soon(shop.orders.set_enabled(enabled)).await.unwrap();
        }
        confirm(&browser).await;
        assert_eq!(browser.status().await, 409);
        browser.open("/at/services/orders").await;
        browser.until_row("a", &["enabled"]).await;

        browser.open("/at/shop/limits").await;
        browser.click("a.action[href*='do=rollback']").await;
        browser.until("return document.querySelector('form.confirm .danger') !== null").await;
        soon(shop.limits().publish(&30.into())).await.unwrap();
        confirm(&browser).await;
        assert_eq!(browser.status().await, 409);
        assert_eq!(soon(shop.console.get("/shop/limits")).await.unwrap().data, "30");

        let before = nodes(&shop).await;
        let node = ask_to_delete(&browser).await;
        let waiter = format!("/shop/report/{node}");
        let waiting = soon(Mutex::new(&shop.console, "/shop/report").unwrap().participants()).await.unwrap();
        let second = waiting.iter().find(|one| one.name == node).unwrap();
        soon(Mutex::new(&shop.console, "/shop/report").unwrap().revoke(second)).await.unwrap();
        confirm(&browser).await;
        assert_eq!(browser.status().await, 409);
        assert!(soon(shop.console.exists(&waiter)).await.unwrap().is_some());
        until_unchanged(&shop, &before).await;
    }
}
