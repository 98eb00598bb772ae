use super::Texts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns the texts of `lines`, each `key=text` with the number of `<` before it as its rank.
fn texts(lines: &[&str]) -> Texts {
    let mut texts = Texts::default();
    for line in lines {
        let stronger = line.trim_start_matches('<');
        let (key, text) = stronger.split_once('=').unwrap();
        texts.insert(key, text, line.len() - stronger.len()).unwrap();
    }
    texts
}

fn decode<T: DeserializeOwned>(lines: &[&str]) -> Result<T, String> {
    texts(lines).decode().map_err(|error| error.to_string())
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Access {
    Public,
    ReadOnly,
    Limited { per_second: u32 },
    Groups(Vec<String>),
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct Server {
    port: u16,
    max_threads: Option<i64>,
    ratio: f32,
    enabled: bool,
    letter: Option<char>,
    hosts: Vec<String>,
    access: Option<Access>,
    labels: BTreeMap<String, String>,
    ports: BTreeMap<u8, u16>,
    below: Option<Box<Server>>,
    pair: Option<(u8, bool)>,
    nothing: Option<()>,
}

#[test]
fn texts_become_fields_of_any_scalar_type() {
    let server: Server = decode(&[
        "port= 8080 ",
        "max-threads=-3",
        "ratio=0.25",
        "enabled=ON",
        "letter=\u{e4}",
        "labels.a=1",
        "labels[b.c]=2",
        "ports.7=70",
        "below.port=1",
        "below.below.port=2",
        "pair=5, no",
        "nothing=",
        "unknown.key=ignored",
    ])
    .unwrap();
    let inner = Server { port: 2, ..Server::default() };
    assert_eq!(
        server,
        Server {
            port: 8080,
            max_threads: Some(-3),
            ratio: 0.25,
            enabled: true,
            letter: Some('\u{e4}'),
            labels: [("a", "1"), ("b.c", "2")].map(|(key, text)| (key.to_owned(), text.to_owned())).into(),
            ports: [(7, 70)].into(),
            below: Some(Box::new(Server { port: 1, below: Some(Box::new(inner)), ..Server::default() })),
            pair: Some((5, false)),
            nothing: Some(()),
            ..Server::default()
        }
    );
}

#[test]
fn names_of_fields_and_variants_have_any_style() {
    for key in ["max-threads", "maxThreads", "max_threads", "MAX_THREADS"] {
        assert_eq!(decode::<Server>(&[&format!("{key}=7")]).unwrap().max_threads, Some(7), "{key}");
    }
    // The stronger text wins in any style; of equal ones, the exact name.
    for (lines, wanted) in [
        (["max-threads=1", "<maxThreads=2"], 2),
        (["<max-threads=1", "maxThreads=2"], 1),
        (["<max_threads=1", "<maxThreads=2"], 1),
        (["<maxThreads=2", "<max_threads=1"], 1),
    ] {
        assert_eq!(decode::<Server>(&lines).unwrap().max_threads, Some(wanted), "{lines:?}");
    }
    for (line, wanted) in [
        ("access=read-only", Access::ReadOnly),
        ("access=PUBLIC", Access::Public),
        ("access.limited.per-second=9", Access::Limited { per_second: 9 }),
        ("access.groups=a,b", Access::Groups(vec!["a".into(), "b".into()])),
    ] {
        assert_eq!(decode::<Server>(&[line]).unwrap().access, Some(wanted), "{line}");
    }
    // Keys of maps stay as they are.
    let map: BTreeMap<String, u8> = decode(&["a-b=1", "aB=2"]).unwrap();
    assert_eq!(map.into_iter().collect::<Vec<_>>(), [("a-b".to_owned(), 1), ("aB".to_owned(), 2)]);
}

#[test]
fn a_stronger_list_or_variant_replaces_the_weaker_one() {
    for (lines, wanted) in [
        (&["hosts=a, b"][..], &["a", "b"][..]),
        (&["hosts="], &[]),
        (&["hosts[0]=a,b", "hosts[1]=c"], &["a,b", "c"]),
        (&["hosts[0]=a", "hosts[1]=b", "<hosts[0]=c"], &["c"]),
        (&["hosts[0]=a", "hosts[1]=b", "<hosts=c"], &["c"]),
        (&["hosts=a,b", "<hosts[0]=c"], &["c"]),
        (&["hosts=a", "hosts[0]=b"], &["a"]),
    ] {
        assert_eq!(decode::<Server>(lines).unwrap().hosts, wanted, "{lines:?}");
    }
    for (lines, wanted) in [
        (&["access=public", "<access.limited.per-second=2"][..], Access::Limited { per_second: 2 }),
        (&["access.limited.per-second=2", "<access=public"], Access::Public),
        (&["access.groups=a", "<access.limited.per-second=2"], Access::Limited { per_second: 2 }),
    ] {
        assert_eq!(decode::<Server>(lines).unwrap().access, Some(wanted), "{lines:?}");
    }
    // A list of a stronger layer does not take parts of elements of a weaker one.
    let list: Value = decode(&["[0].a=1", "[0].b=2", "<[0].a=3"]).unwrap();
    assert_eq!(list, json!([{ "a": "3" }]));
    // Everything else is merged key by key.
    let all: Value = decode(&["a.b=1", "<a.c=2", "a=text", "<<a.b=3"]).unwrap();
    assert_eq!(all, json!({ "a": { "b": "3", "c": "2" } }));
}

#[test]
fn an_error_names_the_key_and_the_rule_and_nothing_of_the_value() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        #[serde(rename = "port")]
        _port: u16,
        #[serde(rename = "inner")]
        _inner: Option<Box<Strict>>,
    }
    for (lines, wanted) in [
        (&["port=70000"][..], "key \"port\" must be an integer from 0 to 65535"),
        (&["port.x=1"], "key \"port\" must have a text, and has only keys below it"),
        (&["port="], "key \"port\" must be an integer from 0 to 65535"),
        (&["below.ratio=x"], "key \"below.ratio\" must be a number"),
        (&["below=x"], "key \"below\" must have keys below it, and has only a text"),
        (&["enabled=secret"], "key \"enabled\" must be true or false"),
        (&["letter=secret"], "key \"letter\" must be a character"),
        (&["nothing=secret"], "key \"nothing\" must be empty"),
        (&["pair=1"], "key \"pair\" has 1 elements, but must be a tuple of size 2"),
        (&["pair=1,secret"], "key \"pair\" must be true or false"),
        (&["pair[0]=1", "pair[1]=secret"], "key \"pair[1]\" must be true or false"),
        (&["hosts[0]=a", "hosts[2]=b"], "key \"hosts[2]\" must follow an element with the index 1"),
        (&["hosts.a=a"], "key \"hosts\" must be a list: a text with commas, or keys with indexes"),
        (&["ports.secret=1"], "key \"ports.secret\" must be an integer from 0 to 255"),
        (&["access=secret"], "key \"access\" must be one of public, readOnly, limited, groups"),
        (&["access.limited.x=1"], "key \"access.limited.per_second\" must have a value"),
        (&["access.public.x=1"], "key \"access.public\" must have no keys below it"),
        (
            &["access.a=1", "access.b=1"],
            "key \"access\" must be a variant's name, or have keys of one variant below it",
        ),
    ] {
        let error = texts(lines).decode::<Server>().unwrap_err();
        assert_eq!(error.to_string(), wanted, "{lines:?}");
        assert!(!format!("{error:?}").contains("=secret"));
    }
    for (lines, wanted) in [
        (&[][..], "key \"port\" must have a value"),
        (&["port=1", "inner.x=1"], "key \"inner.x\" is unknown"),
        (&["port=1", "inner.port=1", "inner.inner.a=1"], "key \"inner.inner.a\" is unknown"),
        (&["port=1", "inner.inner.port=1"], "key \"inner.port\" must have a value"),
    ] {
        assert_eq!(decode::<Strict>(lines).unwrap_err(), wanted, "{lines:?}");
    }
    let error = texts(&["port=secret"]).decode::<Server>().unwrap_err().into_codec_error("key \"port\"");
    assert_eq!(error.to_string(), "key \"port\" must be an integer from 0 to 65535");
    assert_eq!(error.detail(), Some("key \"port\": \"secret\" must be an integer from 0 to 65535"));
}

#[test]
fn keys_have_at_most_64_levels() {
    let deep = |levels: usize| vec!["a"; levels].join(".");
    let mut texts = Texts::default();
    texts.insert(&deep(64), "", 0).unwrap();
    let error = texts.insert(&deep(65), "", 0).unwrap_err();
    assert_eq!((error.key(), error.rule()), (deep(65).as_str(), "must have at most 64 levels"));
    let hostile = "[".repeat(1_000_000);
    texts.insert(&hostile, "", 0).unwrap();
    texts.insert(&".".repeat(1_000_000), "", 0).unwrap_err();
}

#[test]
fn a_type_that_contains_itself_ends_at_a_depth() {
    #[derive(Debug, Deserialize)]
    struct Tree(#[expect(dead_code, reason = "only read")] Vec<Tree>);
    #[derive(Debug, Deserialize)]
    struct Chain(#[expect(dead_code, reason = "only read")] Option<Box<Chain>>);
    let mut texts = Texts::default();
    texts.insert("a", "x", 0).unwrap();
    let tree = texts.decode::<BTreeMap<String, Tree>>().unwrap_err();
    let chain = texts.decode::<BTreeMap<String, Chain>>().unwrap_err();
    for error in [tree, chain] {
        assert_eq!(error.key(), "a");
        assert!(error.rule().contains("at most 256 values deep"), "{error}");
    }
}

#[test]
fn all_keys_together_have_a_maximum_of_levels() {
    let mut texts = Texts::default();
    let insert = |number: usize| texts.insert(&format!("{number}{}", ".".repeat(50)), "x", 0);
    let error = (0..10_000).map(insert).find_map(Result::err).unwrap();
    assert!(error.rule().contains("all keys together must have at most 100000 levels"), "{error}");
}
