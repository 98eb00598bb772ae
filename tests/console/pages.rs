//! What each page shows of recipes that services wrote.

use crate::browser::Browser;
use crate::neighbours::Neighbours;
use crate::site::Site;
use crate::world::{Shop, watcher};
use docent::CreateMode;
use docent_battery::{Backend, both_backends_with_packages};

/// The pages of the navigation, with their titles.
pub(crate) const PAGES: [(&str, &str); 9] = [
    ("/", "Overview"),
    ("/locks", "Locks"),
    ("/elections", "Elections"),
    ("/services", "Services"),
    ("/queues", "Queues"),
    ("/config", "Configuration"),
    ("/members", "Membership"),
    ("/sessions", "Sessions"),
    ("/tree", "All recipes"),
];

/// Opens each page of the navigation, and checks what all have in common.
async fn visit_pages(browser: &Browser) {
    for (path, title) in PAGES {
        browser.open(path).await;
        assert_eq!(browser.text("h1").await.as_deref(), Some(title));
        assert_eq!(browser.text("title").await, Some(format!("{title} · Docent")));
        browser.until_live().await;
        let current = browser.eval("return document.querySelector('nav [aria-current=page]').pathname").await;
        assert_eq!(current, path);
    }
}

/// Checks that the browser has loaded nothing from elsewhere, and that nothing failed.
async fn is_clean(browser: &Browser, site: &Site) {
    let own = format!("{}/", site.origin());
    let others: Vec<_> = browser.requests().await.into_iter().filter(|url| !url.starts_with(&own)).collect();
    assert_eq!(others, [""; 0]);
    assert_eq!((browser.errors().await, browser.refused().await), (Vec::new(), Vec::new()));
}

both_backends_with_packages! {
    async fn each_page_shows_what_services_wrote_with_docent(backend: Backend) {
        let server = backend.start().await;
        let shop = Shop::open(&server).await;
        let site = Site::console(&shop.console, |builder| builder);
        let browser = Browser::start(&site.origin()).await;
        visit_pages(&browser).await;

        browser.open("/").await;
        for count in ["3 locks", "1 elections", "3 services", "1 queues", "1 values", "1 groups"] {
            browser.until_texts(".counts > li", |counts| counts.iter().any(|text| text == count)).await;
        }
        browser.until_text("#findings", |text| text.contains("dead letters /shop/jobs 1 dead letter")).await;
        browser.until_text("#health", |text| text.contains("Connection connected")).await;
        browser.until_text("#ensemble", |text| text.contains("serving") && text.contains("standalone")).await;

        browser.open("/locks").await;
        browser.until_row("/shop/report", &["mutex", "billing", "2 waiting"]).await;
        browser.until_row("/shop/prices", &["read write lock", "billing", "1 holder, 1 waiting"]).await;
        browser.until_row("/shop/licences", &["semaphore", "billing", "2 of 2 permits"]).await;
        browser.open("/locks?kind=semaphore").await;
        browser.until_texts("#rows a.path", |rows| rows == ["/shop/licences"]).await;
        browser.open("/locks?q=PRICE").await;
        browser.until_texts("#rows a.path", |rows| rows == ["/shop/prices"]).await;
        browser.open("/locks?older=soon").await;
        browser.until_text("[role=alert]", |text| text.contains("“soon” is not a time")).await;

        browser.open("/locks").await;
        browser.until_row("/shop/report", &[]).await;
        browser.click("#rows a[href='/at/shop/report']").await;
        browser.until_texts(".contender .owner", |owners| owners.len() == 3).await;
        assert!(browser.text(".is-holder .owner").await.unwrap().contains("billing"));
        assert_eq!(browser.texts(".contender .role").await, ["holds", "waits", "waits"]);
        assert!(browser.text(".is-waiter .owner").await.unwrap().contains("reports"));
        assert!(browser.text("#about").await.unwrap().contains("mutex written by docent"));

        browser.open("/elections").await;
        browser.until_row("/shop/leader", &["host-1"]).await;
        browser.open("/at/shop/leader").await;
        browser.until_texts(".contender .role", |roles| roles == ["leads", "stands by"]).await;
        assert!(browser.text("#terms").await.unwrap().contains("now"));

        browser.open("/services").await;
        browser.until_row("/services/orders", &["1 enabled", "1 disabled"]).await;
        browser.open("/at/services/orders").await;
        browser.until_row("a", &["enabled", "10.0.0.7:8080", "3", "zone-a"]).await;
        browser.until_row("b", &["disabled", "10.0.0.8:8080", "zone-b"]).await;

        browser.open("/queues").await;
        browser.until_row("/shop/jobs", &[]).await;
        assert_eq!(browser.texts("#rows td").await[..2], ["2", "1"]);
        browser.open("/at/shop/jobs").await;
        browser.until_row("", &["rejected", "no such customer"]).await;
        assert!(browser.text("#claims").await.unwrap().contains("billing"));
        assert!(!browser.text("main").await.unwrap().contains("broken job"));
        browser.click("#rows a.data").await;
        browser.until_text("pre.value", |text| text.contains("broken job")).await;

        browser.open("/config").await;
        browser.until_row("/shop/limits", &["config", "1 earlier"]).await;
        browser.open("/at/shop/limits").await;
        browser.click(".versions a").await;
        browser.until_texts(".diff > *", |lines| {
            lines == ["{", "\"burst\": 1,", "- \"limit\": 10", "+ \"limit\": 20", "}"]
        })
        .await;

        browser.open("/members").await;
        browser.until_row("/shop/workers", &["1 member"]).await;
        browser.open("/at/shop/workers").await;
        browser.until_row("host-7", &["10.0.0.7"]).await;

        browser.open("/sessions").await;
        browser.until_row("0x", &["billing", "leads /shop/leader"]).await;
        browser.until_row("0x", &["reports"]).await;
        // Nodes of no recipe are there, too.
        shop.console.create("/plain", "", CreateMode::Ephemeral).await.unwrap();
        browser.click("#filters a").await;
        let all = |text: &str| ["owns /plain", "leads /shop/leader"].iter().all(|node| text.contains(node));
        browser.until_text("#nodes", all).await;
        browser.open("/sessions/nodes?q=plain").await;
        browser.until_text("#nodes", |text| text.contains("1 session") && text.contains("owns /plain")).await;

        browser.open("/tree").await;
        browser.until_row("/services", &["registry", "2 services"]).await;
        browser.open("/search?q=/shop/jobs").await;
        assert_eq!(browser.location().await, "/at/shop/jobs");
        browser.open("/search?q=licen").await;
        assert_eq!(browser.location().await, "/tree?q=licen");
        browser.until_texts("#rows a.path", |rows| rows == ["/shop/licences"]).await;
        is_clean(&browser, &site).await;
    }

    async fn each_page_shows_what_services_wrote_with_curator_and_kazoo(backend: Backend) {
        let server = backend.start().await;
        let client = watcher(&server).await;
        let neighbours = Neighbours::start(&server, &client).await;
        let held = neighbours.fill().await;
        let site = Site::console(&client, |builder| builder);
        let browser = Browser::start(&site.origin()).await;
        visit_pages(&browser).await;

        browser.open("/locks").await;
        browser.until_row("/curator/report", &["mutex", "1 waiting"]).await;
        browser.until_row("/curator/prices", &["read write lock", "1 holder"]).await;
        browser.until_row("/curator/licences", &["semaphore", "2 permits"]).await;
        browser.until_row("/kazoo/report", &["mutex", "first", "1 waiting"]).await;
        browser.until_row("/kazoo/prices", &["read write lock", "reader", "1 holder, 1 waiting"]).await;
        browser.until_row("/kazoo/licences", &["semaphore", "1 of 2 permits"]).await;
        for (path, writer, owners) in [
            ("/at/curator/report", "curator", ["10.0.0.7", "10.0.0.7"]),
            ("/at/kazoo/report", "kazoo", ["first", "second"]),
        ] {
            browser.open(path).await;
            browser.until_texts(".contender .owner", |texts| texts == owners).await;
            assert_eq!(browser.texts(".contender .role").await, ["holds", "waits"]);
            assert!(browser.text("#about").await.unwrap().contains(writer));
        }

        browser.open("/at/kazoo/report").await;
        browser.eval("window.isSame = true").await;
        held.kazoos_lock.done("release").await;
        browser.until_texts(".is-holder .owner", |texts| texts == ["second"]).await;
        assert_eq!(browser.eval("return window.isSame").await, true);
        browser.open("/at/curator/report").await;
        browser.until_texts(".contender", |texts| texts.len() == 2).await;
        held.curators_lock.done("release").await;
        browser.until_texts(".contender .role", |roles| roles == ["holds"]).await;

        browser.open("/elections").await;
        browser.until_row("/curator/leader", &["host-1"]).await;
        browser.open("/at/curator/leader").await;
        browser.until_texts(".contender .owner", |owners| owners == ["host-1", "host-2"]).await;

        browser.open("/at/curator/services/orders").await;
        browser.until_row("theirs", &["enabled", "10.0.0.9:8080, 8443 (TLS)", "zone"]).await;

        browser.open("/queues").await;
        browser.until_row("/curator/jobs", &[]).await;
        browser.open("/at/curator/jobs").await;
        browser.until_text("#facts", |text| text.contains("Items 2") && text.contains("In work 1")).await;

        browser.open("/config").await;
        browser.until_row("/curator/visits", &["counter", "258"]).await;
        browser.until_row("/kazoo/visits", &["counter", "4"]).await;

        browser.open("/members").await;
        browser.until_row("/curator/workers", &["1 member"]).await;
        browser.until_row("/kazoo/workers", &["1 member"]).await;
        browser.open("/sessions").await;
        browser.until_row("0x", &["/curator/"]).await;
        browser.until_row("0x", &["/kazoo/"]).await;
        is_clean(&browser, &site).await;
    }
}
