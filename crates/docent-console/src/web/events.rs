use super::routes::Shared;
use crate::console::{Inner, OpenStream};
use crate::pages::{Filter, Part, View, connection, draw, milliseconds};
use crate::world::Link;
use axum::extract::{Query, State};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Minimum interval between the patches of one stream.
const INTERVAL: Duration = Duration::from_millis(250);

/// Longest interval between patches, of pages that are expensive to draw.
const LONGEST: Duration = Duration::from_secs(5);

/// Interval of events of an idle stream, without which the browser takes the connection for lost.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
pub(super) struct Wanted {
    /// Path and query of a live page, without the base.
    view: String,
}

/// Streams the changes of a page.
pub(super) async fn stream(State(inner): Shared, Query(wanted): Query<Wanted>) -> Response {
    let Some(view) = view(&wanted.view) else {
        return (StatusCode::BAD_REQUEST, "the view is not the address of a live page\n").into_response();
    };
    let Some(open) = inner.open_stream() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many pages are open\n").into_response();
    };
    let browser = Browser::new(&inner, view, open);
    let patches = stream::unfold(browser, |mut browser| async move {
        let patch = browser.next().await?;
        Some((Ok::<_, Infallible>(patch), browser))
    });
    // Proxies such as nginx would otherwise hold small events back.
    ([("x-accel-buffering", "no")], Sse::new(patches)).into_response()
}

fn view(address: &str) -> Option<View> {
    let uri: Uri = address.parse().ok()?;
    let Query(filter) = Query::<Filter>::try_from_uri(&uri).ok()?;
    View::of(uri.path(), filter)
}

/// A change of a page.
#[derive(Debug, Serialize)]
struct Patch<'a> {
    /// Time of the servers, by which ages are counted.
    now: u64,
    /// Elements by their ids.
    blocks: BTreeMap<&'static str, &'a str>,
    lists: BTreeMap<&'static str, ListPatch<'a>>,
}

/// A change of a list's window.
#[derive(Debug, Serialize)]
struct ListPatch<'a> {
    total: usize,
    from: usize,
    /// Ids of all rows in the window.
    order: Vec<&'a str>,
    /// New and changed rows by their ids.
    rows: BTreeMap<&'a str, &'a str>,
}

/// What one browser shows.
struct Browser {
    inner: Arc<Inner>,
    view: View,
    versions: watch::Receiver<u64>,
    /// Hashes of the elements that were sent, by their ids.
    sent: HashMap<String, u64>,
    /// Hash of the order, length and position of the window that was sent.
    window: u64,
    /// True if the page must be drawn: at first, after a change, and if a part was not up to date.
    is_due: bool,
    /// True once the client was closed.
    is_last: bool,
    next_at: Instant,
    _open: OpenStream,
}

impl Browser {
    fn new(inner: &Arc<Inner>, view: View, open: OpenStream) -> Self {
        Self {
            inner: Arc::clone(inner),
            view,
            versions: inner.world.versions(),
            sent: HashMap::new(),
            window: 0,
            is_due: true,
            is_last: false,
            next_at: Instant::now(),
            _open: open,
        }
    }

    /// Waits for a change of the page, or until the browser needs a sign of life. Returns `None` after the
    /// last change, which is that the client was closed.
    async fn next(&mut self) -> Option<Event> {
        let quiet = Instant::now() + KEEP_ALIVE;
        while !self.is_last {
            if timeout_at(quiet, self.due()).await.is_err() {
                let now = milliseconds(self.inner.world.now());
                return Some(Event::default().event("tick").data(format!("{{\"now\":{now}}}")));
            }
            self.versions.borrow_and_update();
            // After the version was seen: a later end has another one.
            self.is_last = self.inner.world.link().0 == Link::Closed;
            let began = Instant::now();
            let patch = self.patch();
            // Another browser may have had the totals counted just before the change.
            self.is_due = matches!(self.view, View::Overview) && self.inner.world.are_totals_old();
            // Up to the longest interval, drawing for all browsers takes at most half of a processor.
            let streams = u32::try_from(self.inner.streams.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
            let pause = (began.elapsed() * 2).saturating_mul(streams);
            self.next_at = Instant::now() + pause.clamp(INTERVAL, LONGEST);
            if let Some(patch) = patch {
                return Some(Event::default().event("patch").data(patch));
            }
        }
        None
    }

    /// Waits until the page must be drawn. Cancel safe.
    async fn due(&mut self) {
        if !self.is_due {
            // The world sends as long as this browser has it.
            let _ = self.versions.changed().await;
            self.is_due = true;
        }
        // Changes in quick succession are drawn once.
        sleep_until(self.next_at).await;
    }

    /// Returns what differs from what was sent, or `None` if nothing does.
    fn patch(&mut self) -> Option<String> {
        let world = &self.inner.world;
        let pen = self.inner.pen_of_parts();
        let drawn = draw(world, &self.inner.client, &self.view, &pen);
        let connection = connection(world, &pen).into_string();
        let (mut blocks, mut lists) = (BTreeMap::new(), BTreeMap::new());
        let mut sent = HashMap::new();
        let mut is_new = |id: &str, html: &str| {
            let hash = hash(html);
            sent.insert(id.to_owned(), hash);
            self.sent.get(id) != Some(&hash)
        };
        if is_new("connection", &connection) {
            blocks.insert("connection", &*connection);
        }
        // Markup is a string.
        let parts = &drawn.parts;
        let mut window = self.window;
        for part in parts {
            match part {
                Part::Block(id, markup) => {
                    if is_new(id, &markup.0) {
                        blocks.insert(*id, &*markup.0);
                    }
                }
                Part::List(list) => {
                    let order: Vec<_> = list.window.iter().map(|(id, _)| &**id).collect();
                    let new = list.window.iter().filter(|(id, row)| is_new(id, &row.0));
                    let rows: BTreeMap<_, _> = new.map(|(id, row)| (&**id, &*row.0)).collect();
                    window = hash((&order, list.total, list.from));
                    if window != self.window || !rows.is_empty() {
                        let patch = ListPatch { total: list.total, from: list.from, order, rows };
                        lists.insert("rows", patch);
                    }
                }
            }
        }
        let is_empty = blocks.is_empty() && lists.is_empty();
        let patch = Patch { now: milliseconds(world.now()), blocks, lists };
        let text = serde_json::to_string(&patch).expect("a patch is valid JSON");
        (self.sent, self.window) = (sent, window);
        (!is_empty).then_some(text)
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
