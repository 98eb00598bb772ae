//! Payloads of the instances in a folder, which typed readers in Java can read only together.

use super::Neighbour;
use super::class::class_of;
use crate::instance;
use docent_core::recipe::{get_all, is_own_name};
use docent_core::{Client, Error, ErrorKind};
use serde_json::value::RawValue;

/// Maximum number of instances of a folder that are read.
const SAMPLE: usize = 16;

/// Form of a payload for a typed reader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// No payload, which every reader accepts.
    Absent,
    /// A payload that names no class.
    Plain,
    /// A payload of this Java class.
    Class(String),
}

impl Form {
    pub(super) fn of(payload: Option<&RawValue>) -> Self {
        match payload {
            None => Self::Absent,
            Some(payload) => class_of(payload).map_or(Self::Plain, Self::Class),
        }
    }

    /// Returns the class of `other`'s typed readers, if they cannot read a payload of this form. Two classes
    /// of an application may have a common base class, so only those of the neighbours are known to exclude
    /// all others.
    fn breaks<'a>(&self, other: &'a Self) -> Option<&'a str> {
        let Self::Class(theirs) = other else { return None };
        let is_neighbours = Neighbour::ALL.iter().any(|neighbour| neighbour.class() == theirs);
        let breaks = match self {
            Self::Absent => false,
            Self::Plain => true,
            Self::Class(own) => own != theirs && is_neighbours,
        };
        breaks.then_some(theirs)
    }
}

/// Instances of a folder, in Curator's layout, that readers of one Java class cannot read together.
#[derive(Debug)]
pub struct MixedPayloads {
    /// Id of an instance with a payload of the class.
    pub typed: String,
    /// The class.
    pub class: String,
    /// Id of an instance that readers of the class cannot read.
    pub other: String,
    /// The way to write payloads of the class.
    pub remedy: String,
}

/// Finds instances below `folder` that readers of one class cannot read together, among some of them. A
/// folder that does not exist has no instances.
///
/// # Errors
/// `Timeout`, `Closed`.
pub async fn mixed_payloads(client: &Client, folder: &str) -> Result<Option<MixedPayloads>, Error> {
    let forms = forms(client, folder, names(client, folder).await?).await?;
    for (typed, form) in &forms {
        for (other, own) in &forms {
            if let Some(class) = own.breaks(form) {
                return Ok(Some(MixedPayloads {
                    typed: typed.clone(),
                    class: class.to_owned(),
                    other: other.clone(),
                    remedy: remedy(class),
                }));
            }
        }
    }
    Ok(None)
}

/// Checks that typed readers of the instances below `folder` can read a payload of the form `own`, in the
/// node named `name`. Instances that may not be read are skipped. Returns false if there is already a node of
/// that name, which was skipped as well.
///
/// # Errors
/// `InvalidInput` with the class of the readers and the option that writes it; also those of the reads.
pub(super) async fn check(client: &Client, folder: &str, name: &str, own: &Form) -> Result<bool, Error> {
    let mut names = names(client, folder).await?;
    let all = names.len();
    names.retain(|other| other != name);
    let is_new = names.len() == all;
    for (other, form) in &forms(client, folder, names).await? {
        if let Some(class) = own.breaks(form) {
            let now = match own {
                Form::Class(own) => format!("the class {own:?}"),
                _ => "no \"@class\"".to_owned(),
            };
            let detail = format!(
                "the payload has {now}, and must have the class {class:?} of the instance {other:?}, whose typed readers could read no instance of the service otherwise: {}, or register without a payload",
                remedy(class)
            );
            return Err(Error::invalid_input("register", detail));
        }
    }
    Ok(is_new)
}

fn remedy(class: &str) -> String {
    match Neighbour::ALL.into_iter().find(|neighbour| neighbour.class() == class) {
        Some(neighbour) => format!(
            "build the registry with neighbour(Neighbour::{neighbour:?}), or give docent register --neighbour {neighbour}"
        ),
        None => format!("add #[serde(tag = \"@class\", rename = {class:?})] to the type of the payload"),
    }
}

/// Lists the instances below `folder`.
async fn names(client: &Client, folder: &str) -> Result<Vec<String>, Error> {
    match client.children(folder).await {
        Ok(children) => Ok(children.names.into_iter().filter(|name| !is_own_name(name)).collect()),
        Err(error) if is_hidden(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Reads the forms of the payloads of some of these instances.
async fn forms(client: &Client, folder: &str, names: Vec<String>) -> Result<Vec<(String, Form)>, Error> {
    // Spread over all, because instances of one kind often have similar names.
    let step = names.len().div_ceil(SAMPLE).max(1);
    let sample: Vec<_> = names.into_iter().step_by(step).collect();
    let paths: Vec<_> = sample.iter().map(|name| format!("{folder}/{name}")).collect();
    let nodes = get_all(client, &paths.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let mut forms = Vec::new();
    for (name, node) in sample.into_iter().zip(nodes) {
        match node {
            Ok(node) => {
                if let Ok(instance) = instance::decode(&node.data) {
                    forms.push((name, Form::of(instance.payload.as_deref())));
                }
            }
            Err(error) if is_hidden(&error) => {}
            Err(error) => return Err(error),
        }
    }
    // In a fixed order, so that an error names the same instance each time.
    forms.sort_by(|(name, _), (other, _)| name.cmp(other));
    Ok(forms)
}

/// Returns true if there is nothing to read, or nothing that this client may read.
fn is_hidden(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NoNode | ErrorKind::NoAuth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_payloads_that_typed_readers_reject_break_them() {
        let class = |name: &str| Form::Class(name.to_owned());
        let spring = class(Neighbour::SpringCloud.class());
        let dubbo = class(Neighbour::Dubbo3.class());
        let shop = class("com.shop.Meta");
        for (own, other, breaks) in [
            (&Form::Absent, &spring, false),
            (&Form::Plain, &spring, true),
            (&Form::Plain, &shop, true),
            (&spring, &spring, false),
            (&dubbo, &spring, true),
            (&shop, &spring, true),
            (&spring, &shop, false),
            (&spring, &Form::Plain, false),
            (&Form::Plain, &Form::Plain, false),
        ] {
            assert_eq!(own.breaks(other).is_some(), breaks, "{own:?} beside {other:?}");
        }
    }

    #[test]
    fn the_remedy_names_the_option_that_writes_the_class() {
        assert!(remedy(Neighbour::SpringCloud.class()).contains("Neighbour::SpringCloud"));
        assert!(remedy(Neighbour::Dubbo3.class()).contains("--neighbour dubbo3"));
        assert!(remedy("com.shop.Meta").contains("rename = \"com.shop.Meta\""));
    }
}
