//! Changes that appear on an open page.

use crate::browser::Browser;
use crate::neighbours::Neighbours;
use crate::site::Site;
use crate::world::{Shop, process, watcher};
use docent::{Config, Counter, Instance, Mutex, Registry};
use docent_battery::{Backend, both_backends_with_packages};
use docent_tests::{soon, until};
use serde_json::{Value, json};

both_backends_with_packages! {
    async fn a_release_moves_the_next_waiter_up(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let site = Site::console(&shop.console, |builder| builder);
        let browser = Browser::start(&site.origin()).await;
        browser.open("/at/shop/report").await;
        browser.until_texts(".contender", |all| all.len() == 3).await;
        browser.eval("window.second = document.querySelector('.is-waiter')").await;
        soon(shop.report_lock.release()).await.unwrap();
        browser.until_texts(".contender .role", |roles| roles == ["holds", "waits"]).await;
        // The same row of the same document has moved up.
        assert_eq!(browser.eval("return window.second === document.querySelector('.is-holder')").await, true);
        browser.until_text(".is-holder .place", |place| place == "1").await;
        assert!(browser.text(".is-holder .owner").await.unwrap().contains("reports"));
    }

    async fn an_instance_whose_process_was_killed_disappears(backend: Backend) {
        let server = backend.start().await;
        let client = watcher(&server).await;
        let mut neighbours = Neighbours::start(&server, &client).await;
        neighbours.fill().await;
        let registry = Registry::new(&client, "/curator/services").unwrap();
        let _other = soon(registry.register(Instance::new("orders", "10.0.0.7", 8080).id("ours"))).await.unwrap();
        let site = Site::console(&client, |builder| builder);
        let browser = Browser::start(&site.origin()).await;
        browser.open("/at/curator/services/orders").await;
        browser.until_texts("#rows th", |ids| ids.len() == 2).await;
        browser.eval("window.isSame = true").await;
        neighbours.kill_curator();
        browser.until_texts("#rows th", |ids| ids == ["ours"]).await;
        assert_eq!(browser.eval("return window.isSame").await, true);
    }

    async fn an_expired_session_disappears_from_every_page(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let site = Site::console(&shop.console, |builder| builder);
        let browser = Browser::start(&site.origin()).await;
        browser.open("/elections").await;
        browser.until_row("/shop/leader", &["host-1"]).await;
        server.expire(shop.billing.session_id().unwrap()).await.unwrap();
        browser.until_row("/shop/leader", &["host-2"]).await;
        browser.open("/").await;
        browser.until_text("#changes", |text| text.contains("/shop/leader")).await;
    }

    async fn the_progress_of_a_rollout_follows_its_readers(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let site = Site::console(&shop.console, |builder| builder);
        let browser = Browser::start(&site.origin()).await;
        let progress = "const bar = document.querySelector('#rollout progress'); return [bar?.value, bar?.max]";
        browser.open("/at/shop/limits").await;
        browser.until_live().await;
        browser.until_text("#rollout", |text| text.contains("No client publishes which version it runs.")).await;
        browser.eval("window.isSame = true").await;

        let (limits, web) = (shop.limits(), process(&server, "web").await);
        let current = soon(limits.get()).await.unwrap().unwrap();
        let followed = Config::<Value>::new(&web, "/shop/limits").unwrap();
        let readers = ["web-1", "web-2", "web-3"].map(|id| followed.report_as(id).unwrap());
        readers.iter().for_each(|reader| reader.set(&current).unwrap());
        browser.until_text("#rollout p", |text| text.starts_with("3 of 3 run version 1")).await;
        assert_eq!(browser.eval(progress).await, json!([3, 3]));
        let session = format!("{:#x}", web.session_id().unwrap());
        browser.until_texts("#rollout .session", |sessions| sessions == [&*session; 3]).await;

        let next = soon(limits.publish(&json!({ "burst": 1, "limit": 30 }))).await.unwrap();
        browser.until_text("#rollout p", |text| text.starts_with("0 of 3 run version 2")).await;
        readers[1].set(&next).unwrap();
        browser.until_text("#rollout p", |text| text.starts_with("1 of 3 run version 2")).await;
        assert_eq!(browser.eval(progress).await, json!([1, 3]));
        // Those that lag behind are first.
        browser.until_texts("#rollout .owner", |ids| ids == ["web-1", "web-3", "web-2"]).await;
        browser.until_texts("#rollout .badge", |all| all == ["version 1", "version 1", "version 2, current"]).await;
        assert_eq!(browser.violations().await, [""; 0]);
        let [first, _second, last] = readers;
        first.set(&next).unwrap();
        drop(last);
        browser.until_text("#rollout p", |text| text.starts_with("2 of 2 run version 2")).await;
        assert_eq!(browser.eval("return window.isSame").await, true);

        browser.open("/config").await;
        browser.until_row("/shop/limits", &["config", "2/2", "2 earlier"]).await;
        browser.open("/sessions").await;
        browser.until_row(&session, &["runs /shop/limits"]).await;
    }

    async fn a_server_restart_is_shown_as_stale_and_heals(backend: Backend) {
        let server = backend.start_own().await;
        let shop = Shop::open(&server).await;
        let site = Site::console(&shop.console, |builder| builder);
        let browser = Browser::start(&site.origin()).await;
        browser.open("/at/shop/report").await;
        browser.until_live().await;
        browser.eval("window.isSame = true").await;
        let colour = "const style = css => getComputedStyle(document.querySelector(css));
            const [row, main] = [style('.contender .owner'), style('main')];
            return row.color + main.color + main.filter + main.opacity";
        let (fresh, contenders) = (browser.eval(colour).await, browser.texts(".contender .owner").await);

        server.stop().await;
        browser.until_text("#connection", |text| text.starts_with("Stale since ")).await;
        browser.until("return document.documentElement.classList.contains('is-stale')").await;
        assert_ne!(browser.eval(colour).await, fresh);
        assert_eq!(browser.texts(".contender .owner").await, contenders);
        let findings = "return fetch('/').then(reply => reply.text())
            .then(text => text.includes('stale view'))";
        browser.until(findings).await;

        server.start_again().await;
        browser.until_live().await;
        browser.until("return !document.documentElement.classList.contains('is-stale')").await;
        assert_eq!((browser.eval(colour).await, browser.eval("return window.isSame").await), (fresh, true.into()));
        browser.until("return fetch('/').then(reply => reply.text()).then(text => !text.includes('stale view'))").await;
        soon(shop.report_lock.release()).await.unwrap();
        browser.until_texts(".is-holder .owner", |owners| owners.iter().any(|owner| owner.contains("reports"))).await;
    }

    async fn nothing_shifts_while_ages_tick_and_values_change(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let counter = Counter::<i64>::new(&shop.billing, "/shop/visits").unwrap();
        soon(counter.increment()).await.unwrap();
        let site = Site::console(&shop.console, |builder| builder);
        let browser = Browser::start(&site.origin()).await;
        for path in ["/config", "/", "/at/shop/visits", "/at/shop/report", "/queues"] {
            browser.open(path).await;
            browser.until_live().await;
            // At least three ticks of the ages.
            until(async || {
                soon(counter.increment()).await.unwrap();
                browser.eval("return performance.now() > 4000").await == true
            })
            .await;
            let shift = browser.layout_shift().await;
            assert!(shift < 0.001, "{path} shifted by {shift}");
        }
    }
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn a_console_that_stops_is_shown_as_offline_and_heals() {
    let server = Backend::Embedded.start().await;
    let shop = Shop::open(&server).await;
    let mut site = Site::console(&shop.console, |builder| builder);
    let browser = Browser::start(&site.origin()).await;
    browser.open("/locks").await;
    browser.until_live().await;
    browser.eval("window.isSame = true").await;
    site.stop();
    browser.until("return document.querySelector('#connection.is-offline') !== null").await;
    browser.until("return document.documentElement.classList.contains('is-stale')").await;
    site.start_again();
    browser.until_live().await;
    assert_eq!(browser.eval("return window.isSame").await, true);
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn a_page_that_was_reloaded_just_now_still_gets_the_parts_of_a_recipe() {
    let server = Backend::Embedded.start().await;
    let (client, console) = (process(&server, "jobs").await, watcher(&server).await);
    let site = Site::console(&console, |builder| builder);
    let browser = Browser::start(&site.origin()).await;
    browser.open("/at/jobs/lock").await;
    browser.until_live().await;
    // As after a lock that was held for a moment only.
    browser.eval("sessionStorage.setItem('reloaded', Date.now())").await;
    let _guard = soon(Mutex::new(&client, "/jobs/lock").unwrap().acquire()).await.unwrap();
    browser
        .until_texts(".is-holder .owner", |owners| owners.iter().any(|owner| owner.contains("jobs")))
        .await;
}
