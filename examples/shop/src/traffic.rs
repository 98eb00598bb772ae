//! A hundred requests per second, and reports of them.

use crate::caller::{Answer, Call, Caller};
use crate::orders::Order;
use crate::restock::ITEM;
use axum::body::Bytes;
use axum::http::Method;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep};

const PERIOD: Duration = Duration::from_millis(10);

/// Every tenth request is an order; the others read the stock.
const ORDER: usize = 10;

/// One request.
#[derive(Debug, Clone)]
struct Seen {
    at: Instant,
    is_order: bool,
    /// `None` while the request is in flight.
    end: Option<End>,
}

#[derive(Debug, Clone)]
struct End {
    took: Duration,
    /// Status of the answer; 0 if there was none.
    status: u16,
    copy: Option<String>,
    attempts: u32,
}

/// Report of the requests in a period.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Number of all requests.
    pub requests: usize,
    /// Number of reads of the stock's level that no copy answered successfully.
    pub failed_reads: usize,
    /// Number of orders among `requests`.
    pub orders: usize,
    /// Orders that were not booked, by status.
    pub failed_orders: BTreeMap<u16, usize>,
    /// Number of requests for which more than one copy was called.
    pub retried: usize,
    /// Duration of the slowest request.
    pub slowest: Duration,
    /// Number of answers of each copy.
    pub by: BTreeMap<String, usize>,
}

/// Sends requests until it is dropped.
#[derive(Debug)]
pub struct Traffic {
    seen: Arc<Mutex<Vec<Seen>>>,
    sending: JoinHandle<()>,
}

impl Traffic {
    /// Starts to send requests.
    pub fn start(caller: Caller) -> Self {
        let seen = Arc::default();
        let sending = tokio::spawn(send(caller, Arc::clone(&seen)));
        Self { seen, sending }
    }

    /// Returns a report of the requests that began in a past period, once all of them have ended.
    pub async fn report(&self, from: Instant, to: Instant) -> Report {
        loop {
            let of_then: Vec<_> =
                locked(&self.seen).iter().filter(|seen| (from..to).contains(&seen.at)).cloned().collect();
            if of_then.iter().all(|seen| seen.end.is_some()) {
                return Report::of(&of_then);
            }
            sleep(PERIOD).await;
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.sending.abort();
    }
}

async fn send(caller: Caller, seen: Arc<Mutex<Vec<Seen>>>) {
    let mut beat = interval(PERIOD);
    for number in 0.. {
        beat.tick().await;
        let is_order = number % ORDER == 0;
        locked(&seen).push(Seen { at: Instant::now(), is_order, end: None });
        tokio::spawn(one(caller.clone(), Arc::clone(&seen), number, is_order));
    }
}

async fn one(caller: Caller, seen: Arc<Mutex<Vec<Seen>>>, number: usize, is_order: bool) {
    let start = Instant::now();
    let answer = caller.call(&if is_order { order(number) } else { read_stock() }).await;
    let Answer { status, copy, attempts } = answer;
    let status = status.map_or(0, |status| status.as_u16());
    locked(&seen)[number].end = Some(End { took: start.elapsed(), status, copy, attempts });
}

/// Returns a read of the stock.
pub fn read_stock() -> Call {
    Call { method: Method::GET, path: format!("/stock/{ITEM}"), body: Bytes::new() }
}

/// Returns an order, with an id that makes it safe to send again.
pub fn order(number: usize) -> Call {
    let order = Order { item: ITEM.to_owned(), quantity: 1 };
    let body = serde_json::to_vec(&order).expect("an order has no maps, so JSON can represent it").into();
    Call { method: Method::PUT, path: format!("/orders/{number}"), body }
}

fn locked(seen: &Mutex<Vec<Seen>>) -> MutexGuard<'_, Vec<Seen>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Report {
    fn of(all: &[Seen]) -> Self {
        let mut report = Self { requests: all.len(), ..Self::default() };
        for Seen { is_order, end, .. } in all {
            let Some(End { took, status, copy, attempts }) = end else { continue };
            let is_good = (200..300).contains(status);
            report.orders += usize::from(*is_order);
            report.failed_reads += usize::from(!is_order && !is_good);
            if *is_order && !is_good {
                *report.failed_orders.entry(*status).or_default() += 1;
            }
            report.retried += usize::from(*attempts > 1);
            report.slowest = report.slowest.max(*took);
            if let Some(copy) = copy.clone().filter(|_| is_good) {
                *report.by.entry(copy).or_default() += 1;
            }
        }
        report
    }

    /// Returns the number of failed requests of both kinds.
    pub fn failed(&self) -> usize {
        self.failed_reads + self.failed_orders.values().sum::<usize>()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, failed_reads, orders, failed_orders, retried, slowest, by } = self;
        let refused: usize = failed_orders.values().sum();
        write!(
            f,
            "{} reads, {failed_reads} failed; {orders} orders, {refused} not booked",
            requests - orders
        )?;
        if !failed_orders.is_empty() {
            write!(f, " {failed_orders:?}")?;
        }
        write!(f, "; {retried} retried; slowest {} ms; answered by", slowest.as_millis())?;
        by.iter().try_for_each(|(copy, count)| write!(f, " {copy} {count}"))
    }
}
