//! Writers that have lost their lock to a later holder write nothing.

use crate::scene::{Scene, send, soon, until};
use docent::{Fence, Mutex};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_shop::caller::Call;
use docent_shop::policy::{self, Policy};
use docent_shop::stage::Stage;
use docent_shop::stock::{Booking, Stock, StockError};
use docent_shop::traffic::order;
use rustix::process::Signal;

fn booking(id: &str, copy: &str) -> Booking {
    Booking { id: id.to_owned(), item: "tea".to_owned(), quantity: 1, copy: copy.to_owned() }
}

#[tokio::test]
async fn a_fence_below_one_that_has_written_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("shop.db"), folder.path().join("shop.db"));
    let (one, other) = (Stock::open(&one).unwrap(), Stock::open(&other).unwrap());
    let fence = |number: u64| number.to_string().parse::<Fence>().unwrap();
    one.fill("/locks/tea", fence(7), "tea", 10).await.unwrap();
    assert!(other.book("/locks/tea", fence(9), booking("1", "b")).await.unwrap());
    let late = one.book("/locks/tea", fence(7), booking("2", "a")).await;
    assert!(matches!(late, Err(StockError::Stale(stale)) if stale == fence(7)), "{late:?}");
    assert!(one.booked("2").await.unwrap().is_empty() && one.level("tea").await.unwrap() == 9);
    // The holder can continue to write, and the refused write is not counted.
    assert!(
        !other.book("/locks/tea", fence(9), booking("1", "b")).await.unwrap(),
        "the order was already booked"
    );
    assert!(matches!(one.fill("/locks/tea", fence(8), "tea", 99).await, Err(StockError::Stale(_))));
    // Fences of another path are not compared with these.
    one.fill("/locks/coffee", fence(1), "coffee", 5).await.unwrap();
    let sold_out = one
        .book("/locks/coffee", fence(1), Booking { item: "coffee".into(), quantity: 6, ..booking("3", "a") })
        .await;
    assert!(matches!(sold_out, Err(StockError::SoldOut)), "{sold_out:?}");
    assert!(one.booked("3").await.unwrap().is_empty(), "neither the fence nor the order was written");
}

/// Waits until a copy holds the lock of the item `tea`.
async fn until_it_holds(stage: &Stage, name: &str) {
    let lock = Mutex::new(&stage.client, "/locks/tea").unwrap();
    until(async || {
        let line = lock.participants().await.unwrap();
        line.first().is_some_and(|first| first.identity.starts_with(name.as_bytes()))
    })
    .await;
}

both_backends_in_real_time! {
    async fn a_copy_that_was_stopped_with_the_lock_books_nothing_once_another_has_it(backend: Backend) {
        let scene = Scene::set(backend).await;
        let stage = scene.stage(&["a", "b"]).await;
        let stock = Stock::open(&scene.launch().database()).unwrap();
        let policy = policy::config(&stage.client).unwrap();
        // Long enough to suspend the process in between.
        policy.publish(&Policy { charge_ms: 1_000, ..Policy::default() }).await.unwrap();
        let (a, b) = (stage.fleet.copy("a").unwrap(), stage.fleet.copy("b").unwrap());
        until(async || stock.level("tea").await.unwrap() > 0).await;
        for copy in [a, b] {
            until(async || crate::scene::readiness(copy).await["policy"]["charge_ms"] == 1_000).await;
        }
        let call = order(1);
        let late = async { send(a, &call).await };
        let meanwhile = async {
            until_it_holds(&stage, "a").await;
            a.signal(Signal::STOP).unwrap();
            stage.until_removed("a").await.unwrap();
            let (status, body) = send(b, &Call { path: "/orders/2".to_owned(), ..call.clone() }).await;
            assert_eq!(status, 201, "{body}");
            a.signal(Signal::CONT).unwrap();
        };
        let ((status, body), ()) = soon(async { tokio::join!(late, meanwhile) }).await;
        assert_eq!(status, 503, "{body}");
        assert!(stock.booked("1").await.unwrap().is_empty());
        assert_eq!(stock.booked("2").await.unwrap(), ["b"]);
        // An order that is sent again is booked once.
        assert_eq!(send(b, &call).await.0, 201);
        assert_eq!(stock.booked("1").await.unwrap(), ["b"]);
    }
}
