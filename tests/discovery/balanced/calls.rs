//! Single requests to connections that do as they are told.

use crate::scene::{orders, registry, until_ids};
use docent::discovery::{
    AttemptPolicy, Balanced, CallError, Outcome, OutlierPolicy, PickPolicy, RetryBudget,
};
use docent::{Client, Instance, Service};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_tests::{PATIENCE, connect, soon};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};
use tower::limit::ConcurrencyLimit;
use tower::{Service as _, ServiceExt};

/// Request with a word that says how it is done.
#[derive(Clone)]
struct Ask(&'static str);

/// Connection that answers with its instance's id, or does as the request says.
#[derive(Clone)]
struct Link {
    id: String,
    stage: Arc<Stage>,
    is_broken: Arc<AtomicBool>,
    _alive: Arc<()>,
}

/// Stage on which connections are made.
struct Stage {
    /// Connections that were begun, and made.
    begun: AtomicUsize,
    made: AtomicUsize,
    /// Connections are made while it is true.
    open: watch::Sender<bool>,
    /// Clones of it are in each connection.
    alive: Arc<()>,
    /// Ids of the instances at which a request arrived.
    arrived: mpsc::UnboundedSender<String>,
    /// Permits for requests that wait.
    goes_on: Semaphore,
    is_broken: Arc<AtomicBool>,
}

impl Stage {
    fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<String>) {
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let stage = Self {
            begun: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            open: watch::Sender::new(true),
            alive: Arc::default(),
            arrived,
            goes_on: Semaphore::new(0),
            is_broken: Arc::default(),
        };
        (Arc::new(stage), arrivals)
    }

    async fn connect(self: Arc<Self>, instance: Arc<Instance<String>>) -> Result<Link, Error> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let _ = self.open.subscribe().wait_for(|open| *open).await;
        if instance.payload.as_deref() == Some("away") {
            return Err(ErrorKind::ConnectionRefused.into());
        }
        self.made.fetch_add(1, Ordering::Relaxed);
        // Those that are made from now on are well.
        self.is_broken.store(false, Ordering::Relaxed);
        let (is_broken, alive) = (Arc::clone(&self.is_broken), Arc::clone(&self.alive));
        Ok(Link { id: instance.id.clone(), stage: self, is_broken, _alive: alive })
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    fn alive(&self) -> usize {
        Arc::strong_count(&self.alive) - 1
    }
}

impl tower::Service<Ask> for Link {
    type Response = String;
    type Error = Error;
    type Future = BoxFuture<'static, Result<String, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self.is_broken.load(Ordering::Relaxed) {
            true => Poll::Ready(Err(ErrorKind::BrokenPipe.into())),
            false => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, Ask(request): Ask) -> Self::Future {
        let Self { id, stage, .. } = self.clone();
        async move {
            let _ = stage.arrived.send(id.clone());
            if request.contains("wait") {
                let permit = stage.goes_on.acquire().await.map_err(Error::other)?;
                permit.forget();
            }
            match id.as_str() {
                "fails" => Err(Error::other("planted")),
                "refuses" => Err(Error::from(ErrorKind::ConnectionRefused)),
                "busy" => Ok("503".to_owned()),
                _ => Ok(id),
            }
        }
        .boxed()
    }
}

type Orders = Balanced<String, Link, Ask>;

fn balanced(view: &Service<String>, stage: &Arc<Stage>) -> Orders {
    let stage = Arc::clone(stage);
    view.balanced(move |instance| Arc::clone(&stage).connect(instance))
        .retry_if(|Ask(request)| request.starts_with("safe"))
        .classify(|answer| match answer {
            Ok(answer) => Outcome::of_status(answer.parse().unwrap_or(200)),
            Err(error) => Outcome::of_error(error),
        })
}

async fn ask(orders: &Orders, request: &'static str) -> Result<String, CallError<Error>> {
    soon(orders.clone().oneshot(Ask(request))).await
}

/// The ends of 20 requests.
async fn ends(orders: &Orders, request: &'static str) -> BTreeSet<String> {
    let mut ends = BTreeSet::new();
    for _ in 0..20 {
        ends.insert(ask(orders, request).await.unwrap_or_else(|error| error.to_string()));
    }
    ends
}

fn set<const N: usize>(ends: [&str; N]) -> BTreeSet<String> {
    ends.map(str::to_owned).into()
}

async fn open(client: &Client, policy: PickPolicy, outlier_policy: OutlierPolicy) -> Service<String> {
    let builder = registry(client).service_builder("orders").policy(policy).outlier_policy(outlier_policy);
    soon(builder.open()).await.unwrap()
}

/// A view that sets nobody aside.
async fn patient(client: &Client) -> Service<String> {
    open(client, PickPolicy::RoundRobin, OutlierPolicy::never()).await
}

/// A view that sets aside at the first failure.
async fn strict(client: &Client) -> Service<String> {
    open(client, PickPolicy::PowerOfTwo, OutlierPolicy::default().threshold(1)).await
}

const FAILED: &str = "call: instance \"fails\" of service \"orders\" failed: planted";

both_backends_in_real_time! {
    async fn one_connection_serves_all_and_goes_when_its_instance_leaves(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let view = patient(&other).await;
        let (stage, _) = Stage::new();
        let orders_service = balanced(&view, &stage);
        stage.open.send_replace(false);
        let calls: Vec<_> = (0..3).map(|_| {
            let orders = orders_service.clone();
            tokio::spawn(async move { ask(&orders, "one").await })
        }).collect();
        soon(async { while stage.begun.load(Ordering::Relaxed) == 0 { docent_tests::pause().await; } }).await;
        // Another call makes it where the one is dropped that began.
        let mut calls = calls.into_iter();
        calls.next().unwrap().abort();
        soon(async { while stage.begun.load(Ordering::Relaxed) == 1 { docent_tests::pause().await; } }).await;
        stage.open.send_replace(true);
        for call in calls {
            assert_eq!(soon(call).await.unwrap().unwrap(), "1");
        }
        assert_eq!((stage.made(), stage.alive()), (1, 1));
        // Nobody asks for it: it goes with the instance all the same.
        soon(one.update(orders("1").payload("new".to_owned()))).await.unwrap();
        soon(async { while stage.alive() != 0 { docent_tests::pause().await; } }).await;
        assert_eq!(ask(&orders_service, "one").await.unwrap(), "1");
        assert_eq!((stage.made(), stage.alive()), (2, 1));
        soon(one.deregister()).await.unwrap();
        soon(async { while stage.alive() != 0 { docent_tests::pause().await; } }).await;
        until_ids(&view, &[]).await;
        let _again = soon(registry(&client).register(orders("1"))).await.unwrap();
        until_ids(&view, &["1"]).await;
        assert_eq!(ask(&orders_service, "one").await.unwrap(), "1");
        // The view goes on without ZooKeeper, and so do calls. The last clone takes the connection with it.
        soon(other.close()).await;
        assert_eq!(ask(&orders_service, "one").await.unwrap(), "1");
        drop(orders_service);
        soon(async { while stage.alive() != 0 { docent_tests::pause().await; } }).await;
    }

    async fn a_broken_connection_is_made_anew_and_says_nothing_of_its_instance(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let _two = soon(registry(&client).register(orders("2"))).await.unwrap();
        let view = strict(&other).await;
        let (stage, _) = Stage::new();
        let orders_service = balanced(&view, &stage);
        assert_eq!(ends(&orders_service, "one").await, set(["1", "2"]));
        stage.is_broken.store(true, Ordering::Relaxed);
        assert_eq!(ends(&orders_service, "one").await, set(["1", "2"]));
        assert!(stage.made() > 2);
    }

    async fn attempts_at_further_instances_have_one_budget_for_all_requests(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("fails"))).await.unwrap();
        let _two = soon(registry(&client).register(orders("refuses"))).await.unwrap();
        let view = patient(&other).await;
        until_ids(&view, &["fails", "refuses"]).await;
        let (stage, mut arrived) = Stage::new();
        let calls = balanced(&view, &stage);
        let budget = RetryBudget::default().percent(10).min_per_second(0);
        let (bounded, free) = (calls.clone().retry_budget(budget), calls.clone().retry_budget(None));
        // With the default the few requests of a start may all go to another.
        for (service, attempts) in [(bounded, 100..=110), (free, 200..=200), (calls, 200..=200)] {
            let clones = [service.clone(), service];
            for number in 0..100 {
                assert!(ask(&clones[number % 2], "safe").await.is_err());
            }
            let count = std::iter::from_fn(|| arrived.try_recv().ok()).count();
            assert!(attempts.contains(&count), "{count} attempts, not {attempts:?}");
        }
    }

    async fn a_request_goes_to_another_instance_if_it_is_safe_or_never_left(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _good = soon(registry(&client).register(orders("good"))).await.unwrap();
        let view = patient(&other).await;
        let (stage, _) = Stage::new();
        let calls = balanced(&view, &stage);
        let fails = soon(registry(&client).register(orders("fails"))).await.unwrap();
        until_ids(&view, &["fails", "good"]).await;
        assert_eq!(ends(&calls, "unsafe").await, set(["good", FAILED]));
        assert_eq!(ends(&calls, "safe").await, set(["good"]));
        let once = calls.clone().attempt_policy(AttemptPolicy::default().limit(1));
        assert_eq!(ends(&once, "safe").await, set(["good", FAILED]));
        soon(fails.deregister()).await.unwrap();
        // An answer may be a failure, too.
        let busy = soon(registry(&client).register(orders("busy"))).await.unwrap();
        until_ids(&view, &["busy", "good"]).await;
        assert_eq!(ends(&calls, "unsafe").await, set(["503", "good"]));
        assert_eq!(ends(&calls, "safe").await, set(["good"]));
        soon(busy.deregister()).await.unwrap();
        // A connection that the client never made.
        let refuses = soon(registry(&client).register(orders("refuses"))).await.unwrap();
        until_ids(&view, &["good", "refuses"]).await;
        assert_eq!(ends(&calls, "unsafe").await, set(["good"]));
        soon(refuses.deregister()).await.unwrap();
        // One that the maker never made: no copy is needed.
        let away = soon(registry(&client).register(orders("away").payload("away".to_owned()))).await.unwrap();
        until_ids(&view, &["away", "good"]).await;
        let plain: Orders = {
            let stage = Arc::clone(&stage);
            view.balanced(move |instance| Arc::clone(&stage).connect(instance))
        };
        assert_eq!(ends(&plain, "unsafe").await, set(["good"]));
        drop(away);
    }

    async fn the_last_failure_is_told_when_nobody_else_is_left(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let view = patient(&other).await;
        let (stage, _) = Stage::new();
        let calls = balanced(&view, &stage);
        let none = ask(&calls, "safe").await.unwrap_err();
        assert!(matches!(none, CallError::NoInstance { .. }) && none.is_retryable());
        // One that waits is sent to whom comes.
        let waits = calls.clone().attempt_policy(AttemptPolicy::default().wait(PATIENCE));
        let waiting = tokio::spawn(async move { ask(&waits, "one").await });
        docent_tests::pause().await;
        let fails = soon(registry(&client).register(orders("fails"))).await.unwrap();
        assert_eq!(soon(waiting).await.unwrap().unwrap_err().to_string(), FAILED);
        let failed = ask(&calls, "safe").await.unwrap_err();
        assert!(failed.may_have_applied() && !failed.is_retryable(), "{failed}");
        soon(fails.deregister()).await.unwrap();
        let _away = soon(registry(&client).register(orders("away").payload("away".to_owned()))).await.unwrap();
        until_ids(&view, &["away"]).await;
        let away = ask(&calls, "one").await.unwrap_err();
        assert!(matches!(away, CallError::Unreachable { .. }) && !away.may_have_applied(), "{away}");
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        until_ids(&view, &["1", "away"]).await;
        let short = calls.attempt_policy(AttemptPolicy::default().timeout(Duration::from_millis(50)));
        let late = ask(&short, "wait").await.unwrap_err();
        assert!(matches!(late, CallError::TimedOut { .. }) && late.may_have_applied(), "{late}");
        assert_eq!(late.to_string(), "call: instance \"1\" of service \"orders\" did not answer within 50ms");
    }

    async fn a_dropped_request_is_neither_a_success_nor_a_failure_and_not_in_flight(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let _two = soon(registry(&client).register(orders("2"))).await.unwrap();
        let view = strict(&other).await;
        let (stage, mut arrivals) = Stage::new();
        let calls = balanced(&view, &stage);
        // While it is made, while it is under way.
        for polls in 0..6 {
            let mut call = Box::pin(calls.clone().oneshot(Ask("wait")));
            for _ in 0..polls {
                assert!(call.as_mut().now_or_never().is_none());
                docent_tests::pause().await;
            }
        }
        let mut call = calls.clone();
        let waiting = tokio::spawn(call.call(Ask("wait")));
        let id = soon(async { loop { if let Some(id) = arrivals.recv().await { break id; } } }).await;
        waiting.abort();
        let _ = soon(waiting).await;
        // With one in flight anywhere the other would always be picked, and with a failure, too.
        assert_eq!(ends(&calls, "one").await, set(["1", "2"]), "the last was at {id}");
        // While one is in flight, all others go elsewhere.
        while arrivals.try_recv().is_ok() {}
        let waiting = tokio::spawn(call.call(Ask("wait")));
        let id = soon(arrivals.recv()).await.unwrap();
        assert!(!ends(&calls, "one").await.contains(&id));
        stage.goes_on.add_permits(1);
        assert_eq!(soon(waiting).await.unwrap().unwrap(), id);
    }

    async fn requests_to_an_instance_are_bounded_by_its_connection(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let view = patient(&other).await;
        let (stage, mut arrivals) = Stage::new();
        let calls: Balanced<String, ConcurrencyLimit<Link>, Ask> = view.balanced({
            let stage = Arc::clone(&stage);
            move |instance| Arc::clone(&stage).connect(instance).map(|link| link.map(|link| ConcurrencyLimit::new(link, 2)))
        });
        let waiting: Vec<_> = (0..6).map(|_| tokio::spawn(calls.clone().oneshot(Ask("wait")))).collect();
        for _ in 0..3 {
            for _ in 0..2 {
                soon(arrivals.recv()).await.unwrap();
            }
            for _ in 0..20 {
                docent_tests::pause().await;
            }
            assert!(arrivals.try_recv().is_err());
            stage.goes_on.add_permits(2);
        }
        for call in waiting {
            assert_eq!(soon(call).await.unwrap().unwrap(), "1");
        }
    }
}
