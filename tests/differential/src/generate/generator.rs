use crate::script::{Action, Operation, Step};
use fastrand::Rng;
use std::collections::BTreeSet;

/// Maximum number of sessions of a script.
const SESSIONS: usize = 4;
/// Maximum number of requests and scenes of a script.
const LONGEST: usize = 30;

/// Generates the script of this seed.
pub fn generate(seed: u64) -> Vec<Step> {
    let mut rng = Rng::with_seed(seed);
    let sessions = rng.usize(2..=SESSIONS);
    let mut generator = Generator {
        linked: vec![true; sessions],
        ended: vec![false; sessions],
        pool: Vec::new(),
        likely: BTreeSet::from(["/".to_owned()]),
        scenes: 0,
        steps: Vec::new(),
        rng,
    };
    generator.fill_pool();
    let length = generator.rng.usize(6..=LONGEST);
    for _ in 0..length {
        generator.turn();
    }
    generator.steps
}

/// A script in progress, with a guess of the tree, so that most steps have an effect.
pub(super) struct Generator {
    pub(super) rng: Rng,
    /// Whether each session has a link.
    pub(super) linked: Vec<bool>,
    /// Whether each session has ended.
    pub(super) ended: Vec<bool>,
    /// Paths that the script mostly uses.
    pub(super) pool: Vec<String>,
    /// Paths that probably exist.
    pub(super) likely: BTreeSet<String>,
    /// Number of nodes that only one scene uses.
    pub(super) scenes: usize,
    pub(super) steps: Vec<Step>,
}

impl Generator {
    fn fill_pool(&mut self) {
        let all = ["/a", "/b", "/a/x", "/a/y", "/a/x/1", "/a/x/2", "/b/x", "/c"];
        let size = self.rng.usize(3..=all.len());
        self.pool = all[..size].iter().map(|path| (*path).to_owned()).collect();
    }

    fn turn(&mut self) {
        let session = self.someone();
        match self.rng.u32(0..100) {
            0..90 => {
                let action = self.request();
                self.push(session, action);
            }
            _ => self.scene(session),
        }
    }

    /// A session with a link, if there is one.
    pub(super) fn someone(&mut self) -> usize {
        let with_link: Vec<usize> = (0..self.linked.len()).filter(|one| self.linked[*one]).collect();
        let few = self.rng.u8(0..50) == 0;
        match with_link.len() {
            0 => 0,
            _ if few => self.rng.usize(0..self.linked.len()),
            count => with_link[self.rng.usize(0..count)],
        }
    }

    /// Returns true with this probability, in percent.
    pub(super) fn chance(&mut self, percent: u8) -> bool {
        self.rng.u8(0..100) < percent
    }

    pub(super) fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.rng.usize(0..all.len())]
    }

    pub(super) fn push(&mut self, session: usize, action: Action) {
        if matches!(&action, Action::Request(op, fields) if op.name == "auth" && fields[1] != "digest") {
            self.linked[session] = false;
        }
        self.steps.push(Step::new(session, action));
    }

    /// Adds a step whose end the next step does not wait for.
    pub(super) fn push_at_once(&mut self, session: usize, action: Action) {
        self.steps.push(Step { session, at_once: true, action });
    }
}

/// Creates a request with these fields.
///
/// # Panics
/// Panics if no operation has this name.
pub(super) fn request<const N: usize>(name: &str, fields: [String; N]) -> Action {
    let operation = Operation::find(name).unwrap_or_else(|| panic!("{name:?} is not an operation"));
    Action::Request(operation, fields.into())
}
