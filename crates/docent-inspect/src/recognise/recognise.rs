use super::found::Found;
use super::{
    barrier, config, curator_queue, election, lease, lock, members, partition, queue, semaphore, service,
    value,
};
use crate::nodes::{Known, Place, View};
use crate::report::{Plain, Recipe};

/// Recognisers of nodes with children, those with the most distinctive marks first. The first match decides.
const RECOGNISERS: [fn(&Place<'_>) -> Option<Found>; 15] = [
    lease::timed_lease,
    config::config,
    partition::partition,
    semaphore::semaphore,
    queue::docent,
    queue::kazoo_locking,
    service::dubbo,
    lock::read_write_lock,
    election::election,
    lock::mutex,
    curator_queue::curator_queue,
    queue::flat,
    barrier::double_barrier,
    service::curator,
    members::membership,
];

/// Finds the recipe of the node at `path`. While reads are [missing](View::missing), the result is
/// meaningless.
pub(crate) fn recognise(view: &View<'_>, path: &str) -> Found {
    match view.known_folder(path) {
        Some(Known::Present(folder)) => at(&Place::new(view, path, folder)),
        Some(Known::Absent) => Found::new(Recipe::Absent),
        Some(Known::Refused | Known::LeftOut) | None => Found::new(Recipe::Unreadable),
    }
}

fn at(place: &Place<'_>) -> Found {
    if place.names.is_empty() {
        return value::leaf(place);
    }
    let known = RECOGNISERS.iter().find_map(|recogniser| recogniser(place));
    // Reading below the children costs requests, so this is done only when the reads above are complete.
    let known = known.or_else(|| place.view.missing().is_empty().then(|| service::registry(place)).flatten());
    known.unwrap_or_else(|| plain(place))
}

/// Describes a node that is not a recipe.
pub(super) fn plain(place: &Place<'_>) -> Found {
    Found::new(Recipe::Plain(Plain {
        size: place.stat.data_length,
        children: place.names.len(),
        version: place.stat.version,
        modified: place.modified(),
        session: place.stat.owner,
    }))
}
