use docent::time::Timestamp;
use rustix::process::Pid;
use std::io::{Read, Write};

/// Word for a keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// The group to keep.
    Group(Pid),
    /// Time at which the group is to be killed. A later word replaces it.
    KillBy(Timestamp),
}

/// Length of each word: a letter and a number. A pipe takes so few bytes as a whole or not at all.
const LENGTH: usize = 9;

impl Word {
    /// Says it. Nobody may be there to hear it.
    pub(super) fn write_to(self, mut pipe: impl Write) {
        let _ = pipe.write_all(&self.bytes());
    }

    /// The next word; `None` when there will be no other.
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
    fn words_arrive_as_they_were_said() {
        let words = [Word::Group(Pid::INIT), Word::KillBy(Timestamp::from_nanos(u64::MAX))];
        let mut pipe = Vec::new();
        words.into_iter().for_each(|word| word.write_to(&mut pipe));
        let mut rest = &pipe[..];
        assert_eq!(words.map(|_| Word::read_from(&mut rest)), words.map(Some));
        assert_eq!(Word::read_from(rest), None);
        assert_eq!(Word::of([0; LENGTH]), None);
    }
}
