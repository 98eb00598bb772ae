use super::peer::Peer;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// Wrong tokens and passwords in a [`WINDOW`] after which a peer is not heard.
const MOST: u32 = 10;

/// Time in which wrong tokens and passwords are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// Maximum number of peers that are counted separately.
const MOST_PEERS: usize = 1_024;

/// Counts of wrong tokens and passwords in the current minute.
#[derive(Debug)]
pub(super) struct Attempts {
    since: Instant,
    wrong: HashMap<Peer, u32>,
    /// Count of all peers that have no own count.
    others: u32,
}

/// Judgement of a token, or of a user and password.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict<T> {
    Right(T),
    Wrong,
    /// The peer has to wait for this time. What it sent was not compared with anything.
    Limited(Duration),
}

impl Attempts {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, wrong: HashMap::new(), others: 0 }
    }

    /// Judges what a peer sent by `verify`, unless it has sent too much that is wrong.
    pub(super) fn judge<T>(
        &mut self,
        peer: Peer,
        now: Instant,
        verify: impl FnOnce() -> Option<T>,
    ) -> Verdict<T> {
        if now.duration_since(self.since) >= WINDOW {
            *self = Self::new(now);
        }
        let peer = peer.network();
        let wrong = self.wrong.get(&peer);
        let has_room = self.wrong.len() < MOST_PEERS;
        if *wrong.unwrap_or(if has_room { &0 } else { &self.others }) >= MOST {
            return Verdict::Limited(WINDOW.saturating_sub(now.duration_since(self.since)));
        }
        if let Some(right) = verify() {
            return Verdict::Right(right);
        }
        match wrong.is_some() || has_room {
            true => *self.wrong.entry(peer).or_default() += 1,
            false => self.others += 1,
        }
        Verdict::Wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn peer(address: &str) -> Peer {
        Peer(Some(address.parse::<IpAddr>().unwrap()))
    }

    #[test]
    fn a_peer_with_ten_wrong_attempts_is_not_heard_for_the_rest_of_the_minute() {
        let now = Instant::now();
        let mut attempts = Attempts::new(now);
        for _ in 0..MOST {
            assert_eq!(attempts.judge(peer("10.0.0.1"), now, || None::<()>), Verdict::Wrong);
        }
        let later = now + Duration::from_secs(20);
        let limited = attempts.judge(peer("10.0.0.1"), later, || -> Option<()> { panic!("not compared") });
        assert_eq!(limited, Verdict::Limited(Duration::from_secs(40)));
        assert_eq!(attempts.judge(peer("10.0.0.2"), later, || Some(())), Verdict::Right(()));
        assert_eq!(attempts.judge(peer("10.0.0.1"), now + WINDOW, || Some(())), Verdict::Right(()));
    }

    #[test]
    fn right_attempts_are_not_counted() {
        let now = Instant::now();
        let mut attempts = Attempts::new(now);
        for _ in 0..100 {
            assert_eq!(attempts.judge(peer("10.0.0.1"), now, || Some(())), Verdict::Right(()));
        }
        assert_eq!(attempts.judge(peer("10.0.0.1"), now, || None::<()>), Verdict::Wrong);
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_are_one_peer() {
        let now = Instant::now();
        let mut attempts = Attempts::new(now);
        for host in 0..MOST {
            assert_eq!(
                attempts.judge(peer(&format!("2001:db8::{host}")), now, || None::<()>),
                Verdict::Wrong
            );
        }
        assert_eq!(attempts.judge(peer("2001:db8::ffff"), now, || Some(())), Verdict::Limited(WINDOW));
        assert_eq!(attempts.judge(peer("2001:db9::ffff"), now, || Some(())), Verdict::Right(()));
    }

    #[test]
    fn very_many_peers_share_a_limit() {
        let now = Instant::now();
        let mut attempts = Attempts::new(now);
        let (mut wrong, mut number) = (0, 0_u32);
        while number < 5_000
            && let Verdict::Wrong =
                attempts.judge(Peer(Some(IpAddr::from(number.to_be_bytes()))), now, || None::<()>)
        {
            (wrong, number) = (wrong + 1, number + 1);
        }
        assert_eq!(wrong, MOST_PEERS + MOST as usize);
        assert_eq!(attempts.wrong.len(), MOST_PEERS);
        assert_eq!(attempts.judge(peer("0.0.0.1"), now, || Some(())), Verdict::Right(()));
    }
}
