use super::TextError;
use super::key::{self, Step, is_same_key};
use super::texts::Branch;
use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{self, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, VariantAccess, Visitor};
use std::borrow::Cow;
use std::collections::btree_map;

/// Deserializer of the texts at and below a key.
pub(super) struct TextDeserializer<'a> {
    pub(super) branch: Cow<'a, Branch>,
    /// Empty for the root.
    pub(super) key: String,
    /// Number of values that this one is part of.
    pub(super) depth: usize,
}

/// Maximum depth. A type that contains itself could otherwise read the same text without end.
const MAX_DEPTH: usize = 256;

/// Returns the depth of a part of a value.
fn deeper(depth: usize) -> Result<usize, TextError> {
    match depth < MAX_DEPTH {
        true => Ok(depth + 1),
        false => Err(TextError::new(format!("must be at most {MAX_DEPTH} values deep"))),
    }
}

impl<'a> TextDeserializer<'a> {
    pub(super) fn new(root: &'a Branch) -> Self {
        Self { branch: Cow::Borrowed(root), key: String::new(), depth: 0 }
    }

    /// Returns the text of the key itself.
    pub(super) fn text(&self) -> Result<&str, TextError> {
        match &self.branch.text {
            Some(text) => Ok(&text.text),
            None => Err(TextError::new("must have a text, and has only keys below it")),
        }
    }

    /// Returns an error unless the branches below can be the fields of a struct or the entries of a map. An
    /// empty text is an empty map.
    fn check_map(&self) -> Result<(), TextError> {
        let is_text = self.branch.text.as_ref().is_some_and(|text| !text.text.is_empty());
        if is_text && self.branch.below.is_empty() {
            return Err(TextError::new("must have keys below it, and has only a text"));
        }
        Ok(())
    }

    fn entries(&self, fields: &[&str]) -> Result<Entries, TextError> {
        self.check_map()?;
        let entries = self.branch.named(fields).into_iter();
        Ok(Entries { key: self.key.clone(), entries, next: None, depth: self.depth })
    }
}

/// Deserialises a part of a value of this depth with `seed`, and places its errors at the key.
pub(super) fn deserialize<'de, S: DeserializeSeed<'de>>(
    seed: S,
    branch: Branch,
    key: String,
    depth: usize,
) -> Result<S::Value, TextError> {
    let place = key.clone();
    let read = deeper(depth)
        .and_then(|depth| seed.deserialize(TextDeserializer { branch: Cow::Owned(branch), key, depth }));
    read.map_err(|error| error.at(&place))
}

impl<'de> de::Deserializer<'de> for TextDeserializer<'_> {
    type Error = TextError;

    super::scalars::scalars!();

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        let below = &self.branch.below;
        if self.branch.text.is_some() && below.is_empty() {
            self.deserialize_str(visitor)
        } else if !below.is_empty() && below.keys().all(|step| matches!(step, Step::Index(_))) {
            self.deserialize_seq(visitor)
        } else {
            self.deserialize_map(visitor)
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_some(Self { depth: deeper(self.depth)?, ..self })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_newtype_struct(Self { depth: deeper(self.depth)?, ..self })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_seq(self.elements()?)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, TextError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_map(self.entries(&[])?)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_map(self.entries(fields)?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        let known = |name: &str| {
            let variant = variants.iter().find(|variant| **variant == name);
            let variant = variant.or_else(|| variants.iter().find(|variant| is_same_key(variant, name)));
            variant.map_or_else(|| name.to_owned(), |variant| (*variant).to_owned())
        };
        let branch = self.branch.into_owned();
        let rank = branch.rank();
        match branch.text {
            // The name of a variant without content.
            Some(text) if Some(text.rank) == rank => {
                let name = known(&text.text);
                visitor.visit_enum(Variant {
                    name,
                    content: Branch::default(),
                    key: self.key,
                    depth: self.depth,
                })
            }
            // The variant with the strongest text, with its content from all layers.
            _ => {
                let mut strongest = branch.below.into_iter().filter(|(_, below)| below.rank() == rank);
                match (strongest.next(), strongest.next()) {
                    (Some((step, content)), None) => {
                        let key = key::below(&self.key, &step);
                        visitor.visit_enum(Variant {
                            name: known(&step.name()),
                            content,
                            key,
                            depth: self.depth,
                        })
                    }
                    _ => {
                        Err(TextError::new("must be a variant's name, or have keys of one variant below it"))
                    }
                }
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_unit()
    }
}

/// Fields of a struct, or entries of a map.
struct Entries {
    /// Key of the struct or map.
    key: String,
    entries: btree_map::IntoIter<String, (Step, Branch)>,
    next: Option<(Step, Branch)>,
    /// Depth of the struct or map.
    depth: usize,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = TextError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, TextError> {
        let Some((name, entry)) = self.entries.next() else { return Ok(None) };
        let key = key::below(&self.key, &entry.0);
        let name = name_of(&name);
        self.next = Some(entry);
        // An unknown field is placed by the struct that does not know it.
        let deserializer =
            TextDeserializer { branch: Cow::Owned(name), key: self.key.clone(), depth: self.depth };
        match seed.deserialize(deserializer) {
            Ok(name) => Ok(Some(name)),
            Err(error) if error.key().is_empty() => Err(error.at(&key)),
            Err(error) => Err(error.at(&self.key)),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, TextError> {
        let (step, branch) = self.next.take().expect("a key precedes its value");
        deserialize(seed, branch, key::below(&self.key, &step), self.depth)
    }
}

/// Returns a branch with a name as its text, so that the keys of a map can be numbers.
fn name_of(name: &str) -> Branch {
    Branch { text: Some(super::texts::Text { text: name.to_owned(), rank: 0 }), ..Branch::default() }
}

/// Variant of an enum with its content.
struct Variant {
    name: String,
    content: Branch,
    /// Key of the content.
    key: String,
    /// Depth of the enum.
    depth: usize,
}

impl Variant {
    /// Returns the deserializer of the content, and the content's key.
    fn content(self) -> Result<(TextDeserializer<'static>, String), TextError> {
        let Self { content, key, depth, .. } = self;
        let depth = deeper(depth).map_err(|error| error.at(&key))?;
        Ok((TextDeserializer { branch: Cow::Owned(content), key: key.clone(), depth }, key))
    }
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = TextError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), TextError> {
        let name: StringDeserializer<TextError> = self.name.clone().into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant {
    type Error = TextError;

    fn unit_variant(self) -> Result<(), TextError> {
        if self.content.below.is_empty() {
            return Ok(());
        }
        Err(TextError::new("must have no keys below it").at(&self.key))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, TextError> {
        deserialize(seed, self.content, self.key, self.depth)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, TextError> {
        let (content, key) = self.content()?;
        de::Deserializer::deserialize_seq(content, visitor).map_err(|error| error.at(&key))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        let (content, key) = self.content()?;
        let read = content.entries(fields).and_then(|entries| {
            de::Deserializer::deserialize_any(MapAccessDeserializer::new(entries), visitor)
        });
        read.map_err(|error| error.at(&key))
    }
}
