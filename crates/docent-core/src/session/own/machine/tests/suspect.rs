use super::*;

/// Bytes of data, above the smallest suspected size, with room below and above.
const LARGE: usize = 200_000;

fn set(bytes: usize) -> Request {
    let data = Some(Bytes::from(vec![7; bytes]));
    Request::SetData { path: "/large".to_owned(), data, version: -1 }
}

/// Returns a machine whose own limit is far above that.
fn world() -> World {
    let mut world = World::attached();
    world.machine.settings.outbound_limit = 10 * LARGE;
    world
}

impl World {
    /// Sends a request of `bytes` bytes and a small one, and has the server close the link `after` that time.
    fn sends_and_is_closed_on(&mut self, bytes: usize, after: Duration) -> [Receiver<Outcome>; 2] {
        let sent = [self.submit(set(bytes)).unwrap().1, self.get("/a", false).1];
        assert_eq!(self.all_written(), 2);
        self.pass(after);
        self.machine.hung_up(self.now);
        self.lose_link();
        self.attach(SESSION, T).unwrap();
        sent
    }

    /// Returns the number of frames that the machine writes, calling it repeatedly for large frames.
    fn all_written(&mut self) -> usize {
        let mut count = 0;
        loop {
            let more = self.machine.write(self.now, true, &mut self.output);
            count += self.frames().len();
            if !more {
                return count;
            }
        }
    }

    /// Returns true if a request of `bytes` bytes is refused and another request beside it is sent.
    fn refuses(&mut self, bytes: usize) -> bool {
        let (_, mut large) = self.submit(set(bytes)).unwrap();
        let (_, mut beside) = self.get("/a", false);
        let sent = self.all_written();
        self.deliver();
        assert!(beside.try_recv().is_err(), "the small request waits for its reply");
        match large.try_recv() {
            Ok(Outcome::NotSent(Cause::TooLarge { size, limit })) => {
                assert!(size > bytes && size <= limit && limit == 10 * LARGE && sent == 1);
                true
            }
            Ok(outcome) => panic!("{outcome:?}"),
            Err(_) => {
                assert_eq!(sent, 2);
                false
            }
        }
    }
}

const SHORT_PAUSE: Duration = Duration::from_millis(50);

#[test]
fn a_request_on_which_servers_closed_two_links_is_not_resent_but_smaller_ones_are() {
    let mut world = world();
    for _ in 0..2 {
        for mut outcome in world.sends_and_is_closed_on(LARGE, SHORT_PAUSE) {
            assert!(matches!(outcome.try_recv(), Ok(Outcome::Unknown(Cause::LinkLost))));
        }
    }
    assert!(world.refuses(LARGE));
    let mut larger = self::world();
    for _ in 0..2 {
        larger.sends_and_is_closed_on(LARGE, SHORT_PAUSE);
    }
    assert!(larger.refuses(2 * LARGE));
    let mut smaller = self::world();
    for _ in 0..2 {
        smaller.sends_and_is_closed_on(LARGE, SHORT_PAUSE);
    }
    assert!(!smaller.refuses(LARGE - 1));
}

#[test]
fn a_link_that_is_lost_on_a_smaller_request_clears_no_suspicion_and_two_extend_it() {
    let mut world = world();
    for _ in 0..2 {
        world.sends_and_is_closed_on(LARGE, SHORT_PAUSE);
    }
    world.sends_and_is_closed_on(LARGE / 2, SHORT_PAUSE);
    assert!(world.refuses(LARGE));
    assert!(!world.refuses(LARGE / 2));
    let mut world = self::world();
    for bytes in [LARGE, LARGE, LARGE / 2, LARGE / 2] {
        world.sends_and_is_closed_on(bytes, SHORT_PAUSE);
    }
    assert!(world.refuses(LARGE / 2));
}

#[test]
fn one_lost_link_or_two_by_different_requests_raise_no_suspicion() {
    let mut world = world();
    world.sends_and_is_closed_on(LARGE, SHORT_PAUSE);
    world.sends_and_is_closed_on(LARGE + 1, SHORT_PAUSE);
    assert!(!world.refuses(LARGE + 1));
}

#[test]
fn small_requests_and_links_that_are_lost_later_raise_no_suspicion() {
    let mut small = world();
    for _ in 0..3 {
        small.sends_and_is_closed_on(60_000, SHORT_PAUSE);
    }
    assert!(!small.refuses(60_000));
    let mut later = world();
    for _ in 0..3 {
        later.sends_and_is_closed_on(LARGE, T / 5);
    }
    assert!(!later.refuses(LARGE));
}

#[test]
fn two_links_lost_at_distant_times_raise_no_suspicion() {
    let mut world = world();
    world.sends_and_is_closed_on(LARGE, SHORT_PAUSE);
    world.pass(T);
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    world.sends_and_is_closed_on(LARGE, SHORT_PAUSE);
    assert!(!world.refuses(LARGE));
}

#[test]
fn a_size_that_servers_accepted_is_not_suspected() {
    let mut world = world();
    world.submit(set(LARGE)).unwrap();
    let sent = world.written();
    world.answer(sent[0].xid, Code::OK, &Response::Stat(Stat::default())).unwrap();
    for _ in 0..3 {
        world.sends_and_is_closed_on(LARGE, SHORT_PAUSE);
    }
    assert!(!world.refuses(LARGE));
}

#[test]
fn a_suspicion_is_tested_again_after_a_timeout() {
    let mut world = world();
    for _ in 0..2 {
        world.sends_and_is_closed_on(LARGE, SHORT_PAUSE);
    }
    world.pass(T);
    // After such a long pause the session is re-attached first.
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    world.sends_and_is_closed_on(LARGE, SHORT_PAUSE);
    assert!(world.refuses(LARGE), "one more lost link is enough");
}
