//! Tasks arrive, leave, and are polled only when they were woken. Tickets are taken and lost, in thousands of
//! orders.

use super::local_line::{AfterTurn, Departure, LocalLine, Step};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;
use tokio::time::Instant;

const TASKS: usize = 5;
const LIMIT: u32 = 3;

/// Draw in progress.
struct Draw;

/// Turn with the ticket of this number.
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

/// Pseudorandom numbers.
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
    /// Ticket that is held and not lost.
    held: Option<u32>,
    passed: u32,
    /// Waker to call when the draw continues.
    drawing: Option<Waker>,
    draws: u32,
    last_turn: Option<u64>,
    /// Tasks that wait again after a lost turn, each with the number of later tasks that have overtaken it
    /// since.
    overtaken: BTreeMap<u64, u32>,
    /// Tasks that were given a turn and have not taken it.
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

    /// Runs a task if the executor would run it.
    fn run(&mut self, task: usize) {
        match std::mem::replace(&mut self.tasks[task], Task::Idle) {
            Task::Idle => {}
            Task::Has(turn) => self.end_turn(&turn),
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
                assert_eq!(self.draws, 0, "only one task draws at a time");
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
        assert!(!self.tasks.iter().any(same), "two tasks have a turn with one ticket");
        self.given.remove(&id);
        if self.held != Some(turn.0) {
            // The turn was lost before the task took it.
            self.end_turn(&turn);
            self.line.wait_again(id, self.now);
            self.overtaken.insert(id, 0);
            return self.poll(task);
        }
        let has_waited_again = self.overtaken.remove(&id).is_some();
        let is_in_order = has_waited_again || self.last_turn.is_none_or(|last| last < id);
        assert!(is_in_order, "first come, first served");
        self.last_turn = self.last_turn.max(Some(id));
        // A task that was given a turn which is now lost is not overtaken until it learns of the loss.
        let waits = |(waiting, _): &(&u64, &mut u32)| !self.given.contains(waiting);
        for (_, times) in self.overtaken.range_mut(..id).filter(waits) {
            *times += 1;
            assert_eq!(*times, 1, "a task was overtaken by more than the task that drew");
        }
        self.tasks[task] = Task::Has(turn);
    }

    fn leave(&mut self, task: usize) {
        let Task::Waits(id, _) = std::mem::replace(&mut self.tasks[task], Task::Idle) else { return };
        let Departure { turn, draw, next } = self.line.leave(id);
        self.overtaken.remove(&id);
        self.given.remove(&id);
        self.draws -= u32::from(draw.is_some());
        next.into_iter().for_each(Waker::wake);
        turn.into_iter().for_each(|turn| self.end_turn(&turn));
    }

    /// Does what the end of a turn does.
    fn end_turn(&mut self, turn: &Turn) {
        match self.line.end_turn(|ticket| *ticket == turn.0, LIMIT, self.now) {
            AfterTurn::Stale => assert_ne!(self.held, Some(turn.0)),
            AfterTurn::GiveUp(ticket) => self.given_up(ticket),
            AfterTurn::Pass(_) if self.dice.roll(8) == 0 => {
                let ticket = self.line.give_up().unwrap();
                self.given_up(ticket);
            }
            AfterTurn::Pass(_) => {
                if self.dice.roll(8) == 0 {
                    // One task leaves while the turn is created, or all of them leave.
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
        let (ticket, next) = lost.expect("a held ticket must be found");
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
        // From here on every woken task runs, and every turn ends.
        for _ in 0..1_000 {
            world.drawing.take().into_iter().for_each(Waker::wake);
            (0..TASKS).for_each(|task| world.run(task));
        }
        let idle = |task: &Task| matches!(task, Task::Idle);
        assert!(world.tasks.iter().all(idle) && world.line.len() == 0, "seed {seed}: a task waits forever");
        most = most.max(world.passed);
    }
    assert_eq!(most, LIMIT, "no ticket reached its limit");
}

#[test]
fn a_try_is_refused_if_a_task_is_present_and_leaves_no_draw_behind() {
    let now = Instant::now();
    let mut line = LocalLine::<u32, Turn, Draw>::default();
    let waker = Waker::noop();
    let first = line.arrive_first(now).unwrap();
    assert!(line.arrive_first(now).is_none());
    assert!(matches!(line.poll(first, true, waker), Step::Draw));
    line.put_back(Draw);
    let second = line.arrive(now);
    assert!(matches!(line.poll(second, false, waker), Step::Wait));
    let departure = line.leave(first);
    assert!(departure.draw.is_some() && departure.next.is_some());
    assert!(matches!(line.poll(second, false, waker), Step::Draw));
}

#[test]
fn a_draw_continues_with_the_next_task() {
    let now = Instant::now();
    let mut line = LocalLine::<u32, Turn, Draw>::default();
    let waker = Waker::noop();
    let (first, second) = (line.arrive(now), line.arrive(now));
    assert!(matches!(line.poll(first, false, waker), Step::Draw));
    line.put_back(Draw);
    assert!(matches!(line.poll(second, false, waker), Step::Wait));
    let departure = line.leave(first);
    assert!(departure.draw.is_none() && departure.next.is_some());
    assert!(matches!(line.poll(second, false, waker), Step::Poll(Draw)));
    line.drawn(second, 7, now + Duration::from_secs(1));
    assert!(matches!(line.end_turn(|ticket| *ticket == 7, 1, now), AfterTurn::GiveUp(7)), "no task waits");
}

#[test]
fn a_ticket_is_given_up_after_its_maximum_time() {
    let now = Instant::now();
    let mut line = LocalLine::<u32, Turn, Draw>::default();
    let (first, second) = (line.arrive(now), line.arrive(now));
    for id in [first, second] {
        line.poll(id, false, Waker::noop());
    }
    line.drawn(first, 7, now + Duration::from_secs(1));
    let later = now + Duration::from_secs(1);
    assert!(matches!(line.end_turn(|ticket| *ticket == 7, 9, later), AfterTurn::GiveUp(7)));
    assert!(line.next().is_some(), "the other task draws");
}

#[test]
fn a_task_whose_turn_was_lost_before_it_took_it_waits_behind_the_drawing_task() {
    let now = Instant::now();
    let mut line = LocalLine::<u32, Turn, Draw>::default();
    let waker = Waker::noop();
    let [first, late, draws, other] = [(); 4].map(|()| line.arrive(now));
    for id in [first, late, draws, other] {
        line.poll(id, false, waker);
    }
    line.drawn(first, 7, now + Duration::from_secs(1));
    assert!(matches!(line.end_turn(|ticket| *ticket == 7, 9, now), AfterTurn::Pass(_)));
    assert!(line.pass(Turn(7)).is_ok());
    assert!(line.lost(|ticket| *ticket == 7).is_some());
    assert!(matches!(line.poll(draws, false, waker), Step::Draw));
    assert!(matches!(line.poll(late, false, waker), Step::Turn(Turn(7))));
    line.wait_again(late, now);
    // The draw is being polled right now, so no other task may wait for it.
    assert!(matches!(line.poll(late, false, waker), Step::Wait));
    line.put_back(Draw);
    assert!(matches!(line.poll(late, false, waker), Step::Wait));
    assert!(matches!(line.poll(draws, false, waker), Step::Poll(Draw)));
    line.drawn(draws, 8, now + Duration::from_secs(1));
    assert!(matches!(line.end_turn(|ticket| *ticket == 8, 9, now), AfterTurn::Pass(_)));
    assert!(line.pass(Turn(8)).is_ok());
    assert!(matches!(line.poll(other, false, waker), Step::Wait));
    assert!(matches!(line.poll(late, false, waker), Step::Turn(Turn(8))));
}
