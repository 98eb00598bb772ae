use super::commit::Commit;
use super::effects::Effects;
use super::state::State;
use super::tree::{SYSTEM, Tree};
use crate::EndCause;

impl State {
    /// Ends all sessions and deletes all nodes, as if a server that was never used had replaced this one. All
    /// links must be closed, so no client receives the events.
    pub(crate) fn lose_everything(&mut self, now: i64) {
        let mut effects = Effects::default();
        for id in self.session_ids() {
            self.database.end_session(id, EndCause::Lost, now, &mut effects);
        }
        let database = &mut self.database;
        let commit = Commit { zxid: database.next_zxid(now), session: 0, now };
        let nodes = database.tree.iter().map(|(path, _)| path).filter(|path| !SYSTEM.contains(path));
        let mut paths: Vec<String> = nodes.map(str::to_owned).collect();
        paths.sort_unstable();
        // Children are deleted before their parents.
        for path in paths.iter().rev() {
            database.remove_node(commit, path, &mut effects.events);
        }
        database.tree = Tree::new();
        database.past.clear();
    }
}
