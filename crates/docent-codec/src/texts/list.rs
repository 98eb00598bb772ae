use super::TextError;
use super::deserializer::{TextDeserializer, deserialize};
use super::key::{self, Step};
use super::texts::{Branch, Text};
use serde::de::{DeserializeSeed, SeqAccess};
use std::vec;

/// Elements of a list, each with its key.
pub(super) struct Elements {
    elements: vec::IntoIter<(String, Branch)>,
    /// Depth of the list.
    depth: usize,
}

impl TextDeserializer<'_> {
    /// Returns the elements of a list: those of its text, separated by commas, or those under its indexes.
    /// All elements have the highest rank: a list of a stronger layer replaces the whole list.
    pub(super) fn elements(&self) -> Result<Elements, TextError> {
        let indexed = self.branch.below.iter().filter(|(step, _)| matches!(step, Step::Index(_)));
        let rank = indexed.clone().filter_map(|(_, below)| below.rank()).max();
        let elements: Vec<_> = match &self.branch.text {
            Some(text) if rank <= Some(text.rank) => {
                let of_text = split(&text.text).map(|element| {
                    let text = Some(Text { text: element.to_owned(), rank: text.rank });
                    (self.key.clone(), Branch { text, ..Branch::default() })
                });
                of_text.collect()
            }
            _ => match rank {
                Some(rank) => {
                    let strongest = indexed.filter(|(_, below)| below.rank() == Some(rank));
                    self.in_order(strongest.map(|(step, below)| (step, below.only(rank))))?
                }
                None if self.branch.below.is_empty() => Vec::new(),
                None => {
                    return Err(TextError::new("must be a list: a text with commas, or keys with indexes"));
                }
            },
        };
        Ok(Elements { elements: elements.into_iter(), depth: self.depth })
    }

    fn in_order<'s>(
        &self,
        elements: impl Iterator<Item = (&'s Step, Branch)>,
    ) -> Result<Vec<(String, Branch)>, TextError> {
        let placed = elements.enumerate().map(|(place, (step, branch))| {
            let key = key::below(&self.key, step);
            if *step == Step::Index(place) {
                return Ok((key, branch));
            }
            Err(TextError::new(format!("must follow an element with the index {place}")).at(&key))
        });
        placed.collect()
    }
}

/// Returns the elements of a text. An empty text has none.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let text = Some(text.trim()).filter(|text| !text.is_empty());
    text.into_iter().flat_map(|text| text.split(',')).map(str::trim)
}

impl<'de> SeqAccess<'de> for Elements {
    type Error = TextError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, TextError> {
        let element = self.elements.next();
        element.map(|(key, branch)| deserialize(seed, branch, key, self.depth)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.elements.len())
    }
}
