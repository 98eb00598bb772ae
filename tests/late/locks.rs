use crate::scene::Scene;
use docent::recipe::Line;
use docent::{Barrier, Mutex};
use docent_tests::{KIND, soon};

#[tokio::test(start_paused = true)]
async fn a_late_ticket_is_deleted() {
    let scene = Scene::start().await;
    let mutex = Mutex::new(&scene.client, "/lock").unwrap();
    soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
    let acquired = scene.begin({
        let mutex = mutex.clone();
        async move { mutex.acquire().await }
    });
    let guard = soon(acquired.await).await.unwrap().unwrap();
    assert_eq!(scene.other.children("/lock").await.unwrap().names.len(), 1);
    scene.deliver();
    assert_eq!(scene.other.children("/lock").await.unwrap().names.len(), 2, "the late node must exist");
    scene.until_children("/lock", 1).await;
    soon(guard.release()).await.unwrap();
    soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn late_tickets_of_one_transaction_are_all_deleted() {
    let scene = Scene::start().await;
    let line = Line::new(&scene.client, "/line", &KIND, "lease-").unwrap();
    drop(soon(line.take_tickets(2, None)).await.unwrap());
    scene.until_children("/line", 0).await;
    let drawn = scene.begin({
        let line = line.clone();
        async move { line.take_tickets(3, None).await }
    });
    let batch = soon(drawn.await).await.unwrap().unwrap();
    scene.until_children("/line", 3).await;
    scene.deliver();
    assert_eq!(scene.other.children("/line").await.unwrap().names.len(), 6, "the late nodes must exist");
    scene.until_children("/line", 3).await;
    let holds = soon(batch.hold()).await.unwrap();
    assert!(holds.len() == 3 && holds.iter().all(|hold| hold.is_held()));
    drop(holds);
    scene.until_children("/line", 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_line_is_not_blocked_by_a_late_ticket() {
    let scene = Scene::start().await;
    let mutex = Mutex::new(&scene.client, "/lock").unwrap();
    soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
    // The acquire is cancelled while its create is in flight.
    let acquired = scene.begin({
        let mutex = mutex.clone();
        async move { drop(tokio::time::timeout(std::time::Duration::from_secs(1), mutex.acquire()).await) }
    });
    soon(acquired.await).await.unwrap();
    scene.deliver();
    let peer = Mutex::new(&scene.other, "/lock").unwrap();
    soon(soon(peer.acquire()).await.unwrap().release()).await.unwrap();
    scene.until_children("/lock", 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_barrier_that_is_set_again_is_not_removed_by_a_late_request() {
    let scene = Scene::start().await;
    let barrier = Barrier::new(&scene.client, "/barrier").unwrap();
    assert!(soon(barrier.set()).await.unwrap());
    let removed = scene.begin({
        let barrier = barrier.clone();
        async move { barrier.remove().await }
    });
    soon(removed.await).await.unwrap().unwrap();
    assert!(soon(Barrier::new(&scene.other, "/barrier").unwrap().set()).await.unwrap());
    scene.deliver();
    assert!(scene.other.exists("/barrier").await.unwrap().is_some());
}
