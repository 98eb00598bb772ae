use super::found::Found;
use super::recognise::plain;
use crate::nodes::Place;
use crate::report::{Barrier, Counter, Kind, NodeText, NumberFormat, Recipe, Value, Writer};
use docent_core::ClientIdentity;
use std::net::IpAddr;

/// Maximum length of data that is read as a number or as an identity, in bytes.
const SHORT: usize = 512;

/// Recognises a node without children: a counter, a barrier, a shared value, or no recipe.
pub(super) fn leaf(place: &Place<'_>) -> Found {
    let size = place.stat.data_length;
    if size == 0 || place.stat.owner.is_some() {
        return plain(place);
    }
    let data = if size <= SHORT { place.own_data() } else { None };
    let known = data.and_then(|data| counter(place, data).or_else(|| barrier(place, data)));
    known.unwrap_or_else(|| value(place))
}

fn counter(place: &Place<'_>, data: &[u8]) -> Option<Found> {
    let (number, format) = number(data)?;
    let counter = Counter { number, format, version: place.stat.version, modified: place.modified() };
    let may_be: &[Kind] = match format {
        NumberFormat::Text => &[Kind::Value, Kind::Config, Kind::Semaphore],
        NumberFormat::I32 | NumberFormat::I64 => &[Kind::Value],
    };
    Some(Found::new(Recipe::Counter(counter)).may_be(may_be.iter().copied()))
}

/// Parses a number in one of the formats. Four or eight letters are text.
fn number(data: &[u8]) -> Option<(String, NumberFormat)> {
    let text = std::str::from_utf8(data).ok().filter(|text| !text.chars().any(char::is_control));
    if let Some(text) = text {
        let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
        return is_number.then(|| (text.to_owned(), NumberFormat::Text));
    }
    match data.len() {
        4 => Some((i32::from_be_bytes(data.try_into().ok()?).to_string(), NumberFormat::I32)),
        8 => Some((i64::from_be_bytes(data.try_into().ok()?).to_string(), NumberFormat::I64)),
        _ => None,
    }
}

/// Recognises a barrier, which holds only the identity of the client that set it.
fn barrier(place: &Place<'_>, data: &[u8]) -> Option<Found> {
    let text = std::str::from_utf8(data).ok()?;
    let writer = if ClientIdentity::parse(text).is_some() {
        Writer::Docent
    } else if text.parse::<IpAddr>().is_ok() {
        Writer::Curator
    } else {
        return None;
    };
    let barrier = Barrier {
        identity: Some(NodeText::new(data.to_vec())),
        since: Some(place.view.since(place.stat.created)),
    };
    Some(Found::new(Recipe::Barrier(barrier)).by([writer]).may_be([Kind::Value]))
}

fn value(place: &Place<'_>) -> Found {
    let value =
        Value { version: place.stat.version, size: place.stat.data_length, modified: place.modified() };
    Found::new(Recipe::Value(value)).may_be([Kind::Config])
}
