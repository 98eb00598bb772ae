//! Lists that are longer than a page.

use crate::browser::Browser;
use crate::site::Site;
use crate::world::watcher;
use docent::{Client, CreateMode};
use docent_battery::{Backend, both_backends_with_packages};
use docent_tests::soon;

const ROWS: usize = 2_000;

/// Creates counters, a few hundred per request.
async fn fill(client: &Client) {
    soon(client.create("/many", "", CreateMode::Persistent)).await.unwrap();
    for first in (0..ROWS).step_by(500) {
        let numbers = first..first + 500;
        let create = numbers.fold(client.transaction(), |create, number| {
            create.create(&format!("/many/n{number:04}"), "7", CreateMode::Persistent)
        });
        soon(create.commit()).await.unwrap();
    }
}

async fn elements(browser: &Browser) -> u64 {
    browser.eval("return document.querySelectorAll('*').length").await.as_u64().unwrap()
}

/// Scrolls until the row of a path is in view.
async fn scroll_to(browser: &Browser, to: &str, path: &str) {
    browser
        .until(&format!(
            "scrollTo(0, {to});
            const row = document.querySelector(\"#rows a[href='/at{path}']\");
            const box = row?.getBoundingClientRect();
            return Boolean(box) && box.top >= 0 && box.bottom <= innerHeight"
        ))
        .await;
}

both_backends_with_packages! {
    async fn two_thousand_rows_are_scrolled_to_the_end_in_a_bounded_page(backend: Backend) {
        let server = backend.start().await;
        let client = watcher(&server).await;
        fill(&client).await;
        let site = Site::console(&client, |builder| builder);
        let browser = Browser::start(&site.origin()).await;
        browser.open("/config").await;
        browser.until("return document.querySelector('#rows').dataset.total === '2000'").await;
        browser.until_row("/many/n0000", &[]).await;
        let few = elements(&browser).await;
        let height = browser.eval("return document.documentElement.scrollHeight").await.as_f64().unwrap();
        assert!(height > 2_000.0 * 16.0, "the scroll bar shows that there are more rows: {height}");

        for (to, path) in [
            ("document.documentElement.scrollHeight / 2 - innerHeight / 2", "/many/n1000"),
            ("document.documentElement.scrollHeight", "/many/n1999"),
            ("document.querySelector('#rows').offsetTop", "/many/n0000"),
            ("document.documentElement.scrollHeight", "/many/n1999"),
        ] {
            scroll_to(&browser, to, path).await;
            let many = elements(&browser).await;
            assert!(many < few + 1_500, "{many} elements, {few} at first");
        }

        // The window at the end is live, too.
        soon(client.set("/many/n1999", "8", None)).await.unwrap();
        browser.until_row("/many/n1999", &["8"]).await;
        soon(client.delete("/many/n1999", None)).await.unwrap();
        browser.until_texts("#rows a.path", |paths| paths.last().is_some_and(|path| path == "/many/n1998")).await;
        assert!(browser.text("#summary").await.unwrap().starts_with("1999"));
    }
}

#[tokio::test]
#[ignore = "needs Chromium: run `cargo xtask test`"]
async fn without_script_links_lead_through_the_list() {
    let server = Backend::Embedded.start().await;
    let client = watcher(&server).await;
    fill(&client).await;
    let site = Site::console(&client, |builder| builder);
    let browser = Browser::start(&site.origin()).await;
    browser.disable_scripts().await;
    browser.open("/config").await;
    assert_eq!(browser.texts("#rows a.path").await.first().map(String::as_str), Some("/many/n0000"));
    browser.click("nav.pages a[rel=next]").await;
    browser.until_row("/many/n0100", &[]).await;
    browser.click("nav.pages a[rel=prev]").await;
    browser.until_row("/many/n0000", &[]).await;
    assert_eq!(browser.eval("return document.documentElement.className").await, "");
}
