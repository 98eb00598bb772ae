//! Tasks come, leave, are polled when they were woken and at no other time, and tickets are drawn and lost,
//! in thousands of orders.

use super::local_line::{Left, LocalLine, Over, Step};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;
use tokio::time::Instant;

const TASKS: usize = 5;
const LIMIT: u32 = 3;

/// A draw under way, and the task that polled it last.
struct Draw;

/// A turn with the ticket of this number.
#[derive(Debug, PartialEq)]
struct Turn(u32);

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A task: idle, waiting under its number, or with its turn.
enum Task {
    Idle,
    Waits(u64, Arc<Flag>),
    Has(Turn),
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

struct World {
    line: LocalLine<u32, Turn, Draw>,
    tasks: Vec<Task>,
    dice: Dice,
    now: Instant,
    tickets: u32,
    /// The ticket that is held and not lost.
    held: Option<u32>,
    passed: u32,
    /// To be woken when the draw goes on.
    drawing: Option<Waker>,
    draws: u32,
    last_turn: Option<u64>,
    /// Tasks that wait again after a turn that was lost, each with the number of later ones that came before
    /// it since.
    overtaken: BTreeMap<u64, u32>,
    /// Tasks that were given a turn, and have not taken it.
    given: BTreeSet<u64>,
}

impl World {
    fn new(seed: u64) -> Self {
        let tasks = (0..TASKS).map(|_| Task::Idle).collect();
        let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Self {
            line: LocalLine::default(),
            tasks,
            dice,
            now: Instant::now(),
            tickets: 0,
            held: None,
            passed: 0,
            drawing: None,
            draws: 0,
            last_turn: None,
            overtaken: BTreeMap::new(),
            given: BTreeSet::new(),
        }
    }

    fn step(&mut self) {
        let task = usize::try_from(self.dice.roll(TASKS as u64)).unwrap();
        match (self.dice.roll(12), &self.tasks[task]) {
            (0..=4, Task::Idle) => {
                let id = self.line.arrive(self.now);
                self.tasks[task] = Task::Waits(id, Arc::default());
                self.poll(task);
            }
            (5, Task::Idle) => {
                if let Some(id) = self.line.arrive_first(self.now) {
                    assert!(self.held.is_none() && self.draws == 0);
                    self.tasks[task] = Task::Waits(id, Arc::default());
                    self.poll(task);
                }
            }
            (0..=6, _) => self.run(task),
            (7, Task::Waits(..)) => self.leave(task),
            (8, _) => self.lose(),
            (9, _) => self.now += Duration::from_millis(300),
            (10, _) => self.drawing.take().into_iter().for_each(Waker::wake),
            _ => {}
        }
    }

    /// Lets a task run, if it would.
    fn run(&mut self, task: usize) {
        match std::mem::replace(&mut self.tasks[task], Task::Idle) {
            Task::Idle => {}
            Task::Has(turn) => self.over(&turn),
            Task::Waits(id, flag) => {
                let is_woken = flag.0.swap(false, Ordering::Relaxed);
                self.tasks[task] = Task::Waits(id, flag);
                if is_woken {
                    self.poll(task);
                }
            }
        }
    }

    fn poll(&mut self, task: usize) {
        let Task::Waits(id, flag) = &self.tasks[task] else { return };
        let (id, waker) = (*id, Waker::from(Arc::clone(flag)));
        match self.line.poll(id, false, &waker) {
            Step::Wait => {}
            Step::Turn(turn) => self.begin(task, id, turn),
            Step::Draw => {
                assert_eq!(self.draws, 0, "one draws");
                self.draws += 1;
                self.draw(task, id, waker);
            }
            Step::Poll(Draw) => self.draw(task, id, waker),
        }
    }

    fn draw(&mut self, task: usize, id: u64, waker: Waker) {
        match self.dice.roll(4) {
            0 | 1 => {
                self.drawing = Some(waker);
                self.line.put_back(Draw);
            }
            2 => {
                self.draws -= 1;
                self.tasks[task] = Task::Idle;
                self.overtaken.remove(&id);
                self.line.failed(id).into_iter().for_each(Waker::wake);
            }
            _ => {
                self.draws -= 1;
                self.tickets += 1;
                (self.held, self.passed) = (Some(self.tickets), 0);
                self.line.drawn(id, self.tickets, self.now + Duration::from_secs(1));
                self.begin(task, id, Turn(self.tickets));
            }
        }
    }

    fn begin(&mut self, task: usize, id: u64, turn: Turn) {
        let same = |other: &Task| matches!(other, Task::Has(other) if *other == turn);
        assert!(!self.tasks.iter().any(same), "two have a turn with one ticket");
        self.given.remove(&id);
        if self.held != Some(turn.0) {
            // It was lost before it was taken.
            self.over(&turn);
            self.line.wait_on(id, self.now);
            self.overtaken.insert(id, 0);
            return self.poll(task);
        }
        let has_waited_again = self.overtaken.remove(&id).is_some();
        let is_in_order = has_waited_again || self.last_turn.is_none_or(|last| last < id);
        assert!(is_in_order, "first come, first served");
        self.last_turn = self.last_turn.max(Some(id));
        // Who was given a turn that is lost by now waits for no other before it knows.
        let waits = |(waiting, _): &(&u64, &mut u32)| !self.given.contains(waiting);
        for (_, times) in self.overtaken.range_mut(..id).filter(waits) {
            *times += 1;
            assert_eq!(*times, 1, "more than the one that drew came first");
        }
        self.tasks[task] = Task::Has(turn);
    }

    fn leave(&mut self, task: usize) {
        let Task::Waits(id, _) = std::mem::replace(&mut self.tasks[task], Task::Idle) else { return };
        let Left { turn, draw, next } = self.line.leave(id);
        self.overtaken.remove(&id);
        self.given.remove(&id);
        self.draws -= u32::from(draw.is_some());
        next.into_iter().for_each(Waker::wake);
        turn.into_iter().for_each(|turn| self.over(&turn));
    }

    /// As the end of a turn does it.
    fn over(&mut self, turn: &Turn) {
        match self.line.over(|ticket| *ticket == turn.0, LIMIT, self.now) {
            Over::Stale => assert_ne!(self.held, Some(turn.0)),
            Over::GiveUp(ticket) => self.given_up(ticket),
            Over::Pass(_) if self.dice.roll(8) == 0 => {
                let ticket = self.line.give_up().unwrap();
                self.given_up(ticket);
            }
            Over::Pass(_) => {
                if self.dice.roll(8) == 0 {
                    // One leaves while the turn is made, or all of them.
                    let tasks = if self.dice.roll(2) == 0 { 1 } else { TASKS };
                    let waiting = |task: &usize| matches!(self.tasks[*task], Task::Waits(..));
                    let leaving: Vec<_> = (0..TASKS).filter(waiting).take(tasks).collect();
                    leaving.into_iter().for_each(|task| self.leave(task));
                }
                let waits = self.tasks.iter().filter_map(|task| match task {
                    Task::Waits(id, _) => Some(*id).filter(|id| !self.given.contains(id)),
                    _ => None,
                });
                let front = waits.min();
                match self.line.pass(Turn(turn.0)) {
                    Ok(next) => {
                        self.given.extend(front);
                        self.passed += 1;
                        assert!(self.passed <= LIMIT, "passed on too often");
                        next.into_iter().for_each(Waker::wake);
                    }
                    Err((turn, ticket)) => {
                        assert_eq!(Some(turn.0), ticket);
                        self.given_up(turn.0);
                    }
                }
            }
        }
    }

    fn given_up(&mut self, ticket: u32) {
        assert_eq!(self.held.take(), Some(ticket));
        self.line.next().into_iter().for_each(Waker::wake);
    }

    fn lose(&mut self) {
        let Some(held) = self.held.take() else { return };
        let lost = self.line.lost(|ticket| *ticket == held);
        let (ticket, next) = lost.expect("a ticket that is held is found");
        assert_eq!(ticket, held);
        next.into_iter().for_each(Waker::wake);
    }
}

#[test]
fn no_order_of_events_loses_a_task_or_doubles_a_turn() {
    let mut most = 0;
    for seed in 1..=5_000 {
        let mut world = World::new(seed);
        (0..80).for_each(|_| world.step());
        // From here on every task that is woken runs, and every turn ends.
        for _ in 0..1_000 {
            world.drawing.take().into_iter().for_each(Waker::wake);
            (0..TASKS).for_each(|task| world.run(task));
        }
        let idle = |task: &Task| matches!(task, Task::Idle);
        assert!(world.tasks.iter().all(idle) && world.line.len() == 0, "seed {seed}: a task waits for ever");
        most = most.max(world.passed);
    }
    assert_eq!(most, LIMIT, "no ticket came to its limit");
}

#[test]
fn who_only_tries_is_refused_where_a_task_is_and_leaves_no_draw_to_others() {
    let now = Instant::now();
    let mut line = LocalLine::<u32, Turn, Draw>::default();
    let waker = Waker::noop();
    let first = line.arrive_first(now).unwrap();
    assert!(line.arrive_first(now).is_none());
    assert!(matches!(line.poll(first, true, waker), Step::Draw));
    line.put_back(Draw);
    let second = line.arrive(now);
    assert!(matches!(line.poll(second, false, waker), Step::Wait));
    let left = line.leave(first);
    assert!(left.draw.is_some() && left.next.is_some());
    assert!(matches!(line.poll(second, false, waker), Step::Draw));
}

#[test]
fn a_draw_goes_on_with_the_next_task() {
    let now = Instant::now();
    let mut line = LocalLine::<u32, Turn, Draw>::default();
    let waker = Waker::noop();
    let (first, second) = (line.arrive(now), line.arrive(now));
    assert!(matches!(line.poll(first, false, waker), Step::Draw));
    line.put_back(Draw);
    assert!(matches!(line.poll(second, false, waker), Step::Wait));
    let left = line.leave(first);
    assert!(left.draw.is_none() && left.next.is_some());
    assert!(matches!(line.poll(second, false, waker), Step::Poll(Draw)));
    line.drawn(second, 7, now + Duration::from_secs(1));
    assert!(matches!(line.over(|ticket| *ticket == 7, 1, now), Over::GiveUp(7)), "nobody waits");
}

#[test]
fn after_its_time_a_ticket_is_given_up() {
    let now = Instant::now();
    let mut line = LocalLine::<u32, Turn, Draw>::default();
    let (first, second) = (line.arrive(now), line.arrive(now));
    for id in [first, second] {
        line.poll(id, false, Waker::noop());
    }
    line.drawn(first, 7, now + Duration::from_secs(1));
    let later = now + Duration::from_secs(1);
    assert!(matches!(line.over(|ticket| *ticket == 7, 9, later), Over::GiveUp(7)));
    assert!(line.next().is_some(), "the other one draws");
}

#[test]
fn a_task_whose_turn_was_lost_before_it_took_it_waits_behind_the_one_that_draws_alone() {
    let now = Instant::now();
    let mut line = LocalLine::<u32, Turn, Draw>::default();
    let waker = Waker::noop();
    let [first, late, draws, other] = [(); 4].map(|()| line.arrive(now));
    for id in [first, late, draws, other] {
        line.poll(id, false, waker);
    }
    line.drawn(first, 7, now + Duration::from_secs(1));
    assert!(matches!(line.over(|ticket| *ticket == 7, 9, now), Over::Pass(_)));
    assert!(line.pass(Turn(7)).is_ok());
    assert!(line.lost(|ticket| *ticket == 7).is_some());
    assert!(matches!(line.poll(draws, false, waker), Step::Draw));
    assert!(matches!(line.poll(late, false, waker), Step::Turn(Turn(7))));
    line.wait_on(late, now);
    // The draw is polled at this moment: nobody else is to wait for it.
    assert!(matches!(line.poll(late, false, waker), Step::Wait));
    line.put_back(Draw);
    assert!(matches!(line.poll(late, false, waker), Step::Wait));
    assert!(matches!(line.poll(draws, false, waker), Step::Poll(Draw)));
    line.drawn(draws, 8, now + Duration::from_secs(1));
    assert!(matches!(line.over(|ticket| *ticket == 8, 9, now), Over::Pass(_)));
    assert!(line.pass(Turn(8)).is_ok());
    assert!(matches!(line.poll(other, false, waker), Step::Wait));
    assert!(matches!(line.poll(late, false, waker), Step::Turn(Turn(8))));
}
