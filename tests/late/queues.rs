use crate::scene::Scene;
use docent::{Config, Queue};
use docent_tests::soon;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_late_put_is_not_a_second_item() {
    let scene = Scene::start().await;
    let queue = Queue::<String>::new(&scene.client, "/queue").unwrap();
    soon(queue.put(&"first".to_owned())).await.unwrap();
    let put = scene.begin({
        let queue = queue.clone();
        async move { queue.put(&"second".to_owned()).await }
    });
    soon(put.await).await.unwrap().unwrap();
    scene.deliver();
    assert_eq!(Queue::<String>::new(&scene.other, "/queue").unwrap().len().await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_is_never_reported_as_lost_when_it_was_applied() {
    let scene = Scene::start().await;
    let queue = Queue::<String>::new(&scene.client, "/queue").unwrap();
    soon(queue.put(&"item".to_owned())).await.unwrap();
    let delivery = soon(queue.take()).await.unwrap();
    let acked = scene.begin_and_deliver_first(async move { delivery.ack().await }).await;
    soon(acked).await.unwrap().unwrap();
    assert_eq!(Queue::<String>::new(&scene.other, "/queue").unwrap().len().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_late_return_of_an_item_with_a_delay_does_not_duplicate_it() {
    let scene = Scene::start().await;
    let queue = Queue::<String>::new(&scene.client, "/queue").unwrap();
    soon(queue.put(&"item".to_owned())).await.unwrap();
    let delivery = soon(queue.take()).await.unwrap();
    let given_back = scene.begin(async move { delivery.nack_after(Duration::from_millis(1)) }).await;
    soon(given_back).await.unwrap().unwrap();
    let peer = Queue::<String>::new(&scene.other, "/queue").unwrap();
    let delivery = soon(peer.take()).await.unwrap();
    assert_eq!(delivery.deliveries(), Some(2));
    soon(delivery.ack()).await.unwrap();
    scene.deliver();
    assert_eq!(peer.len().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_late_publish_does_not_overwrite_a_newer_value() {
    let scene = Scene::start().await;
    let config = Config::<u32>::new(&scene.client, "/config").unwrap();
    soon(config.publish(&1)).await.unwrap();
    let published = scene.begin({
        let config = config.clone();
        async move { config.publish(&2).await }
    });
    soon(published.await).await.unwrap().unwrap();
    let peer = Config::<u32>::new(&scene.other, "/config").unwrap();
    soon(peer.publish(&3)).await.unwrap();
    scene.deliver();
    assert_eq!(*soon(peer.subscribe()).await.unwrap().current().value(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_late_publish_without_a_read_does_not_overwrite_a_newer_value() {
    let scene = Scene::start().await;
    let config = Config::<u32>::new(&scene.client, "/config").unwrap();
    for value in 1..=3 {
        soon(config.publish(&value)).await.unwrap();
    }
    // This publish is one request, with the known version.
    let published = scene.begin({
        let config = config.clone();
        async move { config.publish(&4).await }
    });
    soon(published.await).await.unwrap().unwrap();
    let peer = Config::<u32>::new(&scene.other, "/config").unwrap();
    soon(peer.publish(&5)).await.unwrap();
    scene.deliver();
    assert_eq!(*soon(peer.subscribe()).await.unwrap().current().value(), 5);
    let past = soon(peer.history()).await.unwrap().into_iter().map(|past| past.value.unwrap());
    assert_eq!(past.collect::<Vec<_>>(), [4, 3, 2, 1]);
}
