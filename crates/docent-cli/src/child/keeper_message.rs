use docent::time::Timestamp;
use rustix::process::Pid;
use std::io::{Read, Write};

/// Message to a keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeeperMessage {
    /// Group to keep.
    Group(Pid),
    /// Time at which the group must be killed. A later message replaces it.
    KillBy(Timestamp),
}

/// Length of each message: a letter and a number. A pipe writes this few bytes atomically.
const LENGTH: usize = 9;

impl KeeperMessage {
    /// Writes the message. Errors are ignored, because the keeper may have ended.
    pub(super) fn write_to(self, mut pipe: impl Write) {
        let _ = pipe.write_all(&self.bytes());
    }

    /// Reads the next message. Returns `None` if there will be no more.
    pub(super) fn read_from(mut pipe: impl Read) -> Option<Self> {
        let mut bytes = [0; LENGTH];
        pipe.read_exact(&mut bytes).ok()?;
        Self::of(bytes)
    }

    fn bytes(self) -> [u8; LENGTH] {
        let (letter, number) = match self {
            Self::Group(group) => (b'g', u64::from(group.as_raw_nonzero().get().cast_unsigned())),
            Self::KillBy(at) => (b'k', at.as_nanos()),
        };
        let mut bytes = [letter; LENGTH];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    fn of(bytes: [u8; LENGTH]) -> Option<Self> {
        let [letter, number @ ..] = bytes;
        let number = u64::from_le_bytes(number);
        match letter {
            b'g' => Pid::from_raw(i32::try_from(number).ok()?).map(Self::Group),
            b'k' => Some(Self::KillBy(Timestamp::from_nanos(number))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_decode_to_what_was_encoded() {
        let messages =
            [KeeperMessage::Group(Pid::INIT), KeeperMessage::KillBy(Timestamp::from_nanos(u64::MAX))];
        let mut pipe = Vec::new();
        messages.into_iter().for_each(|message| message.write_to(&mut pipe));
        let mut rest = &pipe[..];
        assert_eq!(messages.map(|_| KeeperMessage::read_from(&mut rest)), messages.map(Some));
        assert_eq!(KeeperMessage::read_from(rest), None);
        assert_eq!(KeeperMessage::of([0; LENGTH]), None);
    }
}
