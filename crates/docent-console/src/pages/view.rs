use super::filter::Filter;
use super::{Drawn, Pen, configs, elections, lists, overview, queues, recipe, sessions};
use crate::world::World;
use docent::Client;
use docent::inspect::Kind;

/// A live page, as its address names it.
#[derive(Debug, Clone)]
pub(crate) enum View {
    Overview,
    List(ListPage, Filter),
    Sessions(Filter),
    /// One recipe.
    At(String, Filter),
}

/// A page that lists recipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListPage {
    Locks,
    Elections,
    Services,
    Queues,
    Config,
    Members,
    Tree,
}

impl ListPage {
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "locks" => Self::Locks,
            "elections" => Self::Elections,
            "services" => Self::Services,
            "queues" => Self::Queues,
            "config" => Self::Config,
            "members" => Self::Members,
            "tree" => Self::Tree,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Locks => "locks",
            Self::Elections => "elections",
            Self::Services => "services",
            Self::Queues => "queues",
            Self::Config => "config",
            Self::Members => "members",
            Self::Tree => "tree",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Locks => "Locks",
            Self::Elections => "Elections",
            Self::Services => "Services",
            Self::Queues => "Queues",
            Self::Config => "Configuration",
            Self::Members => "Membership",
            Self::Tree => "All recipes",
        }
    }

    /// Returns the kinds of recipes on the page; all if there are none.
    pub(crate) fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Locks => {
                &[Kind::Mutex, Kind::ReadWriteLock, Kind::Semaphore, Kind::TimedLease, Kind::Barrier]
            }
            Self::Elections => &[Kind::Election],
            Self::Services => &[Kind::Service, Kind::Registry],
            Self::Queues => &[Kind::Queue],
            Self::Config => &[Kind::Config, Kind::Value, Kind::Counter],
            Self::Members => &[Kind::Membership, Kind::DoubleBarrier, Kind::Partition],
            Self::Tree => &[],
        }
    }
}

impl View {
    /// Returns the view with this path below the base, and whether `from` of its filter matters.
    pub(crate) fn of(path: &str, filter: Filter) -> Option<Self> {
        match path.trim_start_matches('/') {
            "" => Some(Self::Overview),
            "sessions" => Some(Self::Sessions(filter)),
            name => match name.strip_prefix("at/") {
                Some(rest) => Some(Self::At(super::path_segments(rest)?, filter)),
                None => Some(Self::List(ListPage::of(name)?, filter)),
            },
        }
    }

    /// Returns the name of the page in the navigation.
    pub(crate) fn page(&self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::List(page, _) => page.name(),
            Self::Sessions(_) => "sessions",
            Self::At(..) => "at",
        }
    }

    /// Returns path and query of the page without the base, with which the browser asks for its events.
    pub(crate) fn address(&self) -> String {
        let (path, filter) = match self {
            Self::Overview => return "/".to_owned(),
            Self::List(page, filter) => (format!("/{}", page.name()), filter),
            Self::Sessions(filter) => ("/sessions".to_owned(), filter),
            Self::At(path, filter) => (super::at(path), filter),
        };
        format!("{path}?{}from={}", filter.query(), filter.from)
    }
}

/// Draws the page of a view.
pub(crate) fn draw(world: &World, client: &Client, view: &View, pen: &Pen<'_>) -> Drawn {
    match view {
        View::Overview => overview::draw(world, client, pen),
        View::List(ListPage::Elections, filter) => elections::draw(world, filter, pen),
        View::List(ListPage::Config, filter) => configs::draw(world, filter, pen),
        View::List(ListPage::Queues, filter) => queues::draw(world, filter, pen),
        View::List(page, filter) => lists::draw(world, *page, filter, pen),
        View::Sessions(filter) => sessions::draw(world, filter, pen),
        View::At(path, filter) => recipe::draw(world, path, filter, pen),
    }
}
