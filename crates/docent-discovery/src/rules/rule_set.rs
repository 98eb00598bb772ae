use super::provider::Provider;
use super::rule::{ANY_HOST, Rule};
use crate::Instance;
use crate::instance::bracketed;
use crate::layout::{encode, escape};
use std::sync::Arc;

/// Weight of a provider without one, as in Dubbo.
pub(crate) const DEFAULT_WEIGHT: u32 = 100;

/// Rules of a service at one time, in ascending precedence.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleSet {
    rules: Arc<[Rule]>,
}

/// Weight and state of an instance as shown, after all rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overlay {
    weight: u32,
    is_enabled: bool,
}

impl RuleSet {
    /// Orders the rules by origin, host and priority, so that `0.0.0.0` precedes other hosts. Rules that are
    /// equal in these keep their order.
    pub(super) fn new(mut rules: Vec<Rule>) -> Self {
        rules.sort_by(|one, other| {
            (one.origin, &one.host, one.priority).cmp(&(other.origin, &other.host, other.priority))
        });
        Self { rules: rules.into() }
    }

    /// Reads the rules in the names of a folder's nodes. Invalid rules have no effect.
    pub(crate) fn of_folder<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self::new(Rule::of_names(names.map(|name| (name, ())), |(), _| {}))
    }

    /// Returns what the rules make of the provider in the node named `node`. Returns `None` if the name is
    /// not that of a provider.
    pub(crate) fn overlay(&self, service: &str, node: &str) -> Option<Overlay> {
        let provider = Provider::of(service, node)?;
        let (mut weight, mut disabled) = (provider.weight(), provider.disabled());
        for rule in self.rules.iter().filter(|rule| rule.applies_to(&provider)) {
            match rule.is_absent {
                true => (weight, disabled) = (weight.or(rule.weight), disabled.or(rule.disabled)),
                false => (weight, disabled) = (rule.weight.or(weight), rule.disabled.or(disabled)),
            }
        }
        Some(Overlay {
            weight: weight.unwrap_or(DEFAULT_WEIGHT),
            is_enabled: provider.is_enabled() && disabled != Some(true),
        })
    }
}

/// Returns the name of the node, in the folder `configurators` of a service in Dubbo's layout, that disables
/// the provider in the node named `node`, and those with the same address, group and version. Returns `None`
/// if no rule can name that provider.
pub fn disabling(service: &str, node: &str) -> Option<String> {
    let provider = Provider::of(service, node)?;
    // These stand for any host and any port.
    let host = provider.url.host.as_deref().filter(|host| *host != ANY_HOST)?;
    let port = provider.url.port.filter(|port| *port != 0)?;
    let host = bracketed(host);
    let mut url =
        format!("override://{host}:{port}/{service}?category=configurators&disabled=true&dynamic=false");
    // A provider of a group or version is changed only by rules that name these.
    for (name, value) in [("group", &provider.key.group), ("version", &provider.key.version)] {
        if !value.is_empty() {
            url += &format!("&{name}={}", escape(value));
        }
    }
    Some(encode(&url))
}

impl Overlay {
    /// Changes an instance that was read from its node.
    pub(crate) fn apply<P>(self, instance: &mut Instance<P>) {
        instance.weight = Some(self.weight);
        instance.enabled = self.is_enabled;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Origin, document};
    use super::*;
    use crate::layout::Url;
    use proptest::prelude::*;

    const SERVICE: &str = "com.shop.Orders";

    fn node(url: &str) -> String {
        url.replace('%', "%25").replace('/', "%2F")
    }

    fn provider(port: u16, parameters: &str) -> String {
        node(&format!("dubbo://10.0.0.7:{port}/{SERVICE}?application=shop{parameters}"))
    }

    fn rules(urls: &[&str]) -> RuleSet {
        let rule = |url: &&str| Rule::of_url(&Url::parse(url).unwrap(), Origin::Folder).unwrap();
        RuleSet::new(urls.iter().filter_map(rule).collect())
    }

    fn documents(documents: &[&str]) -> RuleSet {
        let rules = documents.iter().flat_map(|text| document::parse(text.as_bytes()).unwrap());
        RuleSet::new(rules.collect())
    }

    /// Returns the weight and the state of a provider at 10.0.0.7:20880.
    fn shown(rules: &RuleSet, parameters: &str) -> (u32, bool) {
        let overlay = rules.overlay(SERVICE, &provider(20880, parameters)).unwrap();
        (overlay.weight, overlay.is_enabled)
    }

    #[test]
    fn a_provider_without_a_weight_has_that_of_dubbo() {
        assert_eq!(shown(&RuleSet::default(), ""), (100, true));
        assert_eq!(shown(&RuleSet::default(), "&weight=3&enabled=false"), (3, false));
        assert_eq!(shown(&RuleSet::default(), "&disabled=true"), (100, false));
        assert_eq!(RuleSet::default().overlay(SERVICE, "no-url"), None);
    }

    #[test]
    fn a_disabling_rule_concerns_only_its_provider() {
        let keyed = "&group=a%26b&version=1.0";
        for (host, parameters) in [("10.0.0.7", ""), ("10.0.0.7", keyed), ("[2001:db8::7]", "&weight=3")] {
            let of = |port: u16, parameters: &str| {
                node(&format!("dubbo://{host}:{port}/{SERVICE}?application=shop{parameters}"))
            };
            let rule = disabling(SERVICE, &of(20880, parameters)).unwrap();
            let rules = RuleSet::of_folder([rule.as_str()].into_iter());
            let is_enabled = |node: &str| rules.overlay(SERVICE, node).unwrap().is_enabled;
            assert!(!is_enabled(&of(20880, parameters)), "{rule}");
            assert!(is_enabled(&of(20881, parameters)) && is_enabled(&of(20880, "&version=2.0")), "{rule}");
            let elsewhere = node(&format!("dubbo://10.0.0.8:20880/{SERVICE}?application=shop{parameters}"));
            assert!(is_enabled(&elsewhere), "{rule}");
        }
        for url in
            ["no-url", "dubbo://10.0.0.7/a", "dubbo:///a", "dubbo://0.0.0.0:1/a", "dubbo://10.0.0.7:0/a"]
        {
            assert_eq!(disabling(SERVICE, &node(url)), None, "{url}");
        }
    }

    #[test]
    fn a_later_rule_overrides_an_earlier_one() {
        let any = "override://0.0.0.0/com.shop.Orders?weight=10";
        let any_again = "override://0.0.0.0/com.shop.Orders?weight=20&priority=1";
        let own = "override://10.0.0.7:20880/com.shop.Orders?weight=30";
        let own_again = "override://10.0.0.7:20880/com.shop.Orders?weight=40&priority=-1";
        let absent = "absent://10.0.0.7:20880/com.shop.Orders?weight=50&disabled=true&priority=9";
        for (urls, expected) in [
            (&[any][..], (10, true)),
            (&[any, any_again], (20, true)),
            (&[any_again, own, any], (30, true)),
            (&[own, own_again, any_again], (30, true)),
            (&[own_again, any_again], (40, true)),
            (&[absent, any], (10, false)),
            (&[absent], (50, false)),
        ] {
            for urls in [urls.to_vec(), urls.iter().rev().copied().collect()] {
                assert_eq!(shown(&rules(&urls), ""), expected, "{urls:?}");
            }
        }
        // An absent rule never replaces a value, also not a value of the provider.
        assert_eq!(shown(&rules(&[absent]), "&weight=7&disabled=false"), (7, true));
        // No rule enables a provider that is not enabled itself.
        let enabled = "override://0.0.0.0/com.shop.Orders?disabled=false";
        assert_eq!(shown(&rules(&[enabled]), "&enabled=false"), (100, false));
        assert_eq!(shown(&rules(&[enabled]), "&disabled=true"), (100, true));
    }

    #[test]
    fn a_document_precedes_the_folder_and_that_of_the_service_comes_last() {
        let folder = rules(&["override://10.0.0.7:20880/com.shop.Orders?weight=1&priority=9"]);
        let application =
            "{scope: application, key: shop, configs: [{side: provider, parameters: {weight: 2}}]}";
        let service =
            "{scope: service, key: com.shop.Orders, configs: [{side: provider, parameters: {weight: 3}}]}";
        let all =
            |sets: &[&RuleSet]| RuleSet::new(sets.iter().flat_map(|set| set.rules.iter().cloned()).collect());
        let (application, service) = (documents(&[application]), documents(&[service]));
        assert_eq!(shown(&all(&[&application, &folder]), "").0, 2);
        assert_eq!(shown(&all(&[&service, &application, &folder]), "").0, 3);
    }

    #[test]
    fn a_rule_applies_only_to_what_it_names() {
        for (url, applies) in [
            ("override://10.0.0.7:20880/com.shop.Orders?weight=1", true),
            ("override://10.0.0.7:20881/com.shop.Orders?weight=1", false),
            ("override://0.0.0.0:20880/com.shop.Orders?weight=1", true),
            ("override://10.0.0.8:20880/com.shop.Orders?weight=1", false),
            // Without a port, the host is that of a consumer.
            ("override://10.0.0.7/com.shop.Orders?weight=1", false),
            ("override://0.0.0.0/com.shop.Orders?weight=1&application=shop", true),
            ("override://0.0.0.0/com.shop.Orders?weight=1&application=*", true),
            ("override://0.0.0.0/com.shop.Orders?weight=1&application=other", false),
            ("override://0.0.0.0/com.shop.Orders?weight=1&side=provider&application=shop", true),
            ("override://0.0.0.0/com.shop.Orders?weight=1&side=consumer", true),
            ("override://0.0.0.0/com.shop.Orders?weight=1&side=consumer&application=shop", false),
            ("override://0.0.0.0/com.shop.Orders?weight=1&side=other", false),
            ("override://0.0.0.0/com.shop.Orders?weight=1&group=g", false),
            ("override://0.0.0.0/com.shop.Orders?weight=1&version=1.0", false),
            ("override://0.0.0.0/com.shop.Other?weight=1", false),
            ("override://0.0.0.0/*?weight=1", true),
            ("override://0.0.0.0/com.shop.Orders?weight=1&enabled=false", false),
            ("override://0.0.0.0/com.shop.Orders?weight=1&compatible_config=true", false),
            ("override://0.0.0.0/com.shop.Orders?weight=1&~application=shop", true),
            ("override://0.0.0.0/com.shop.Orders?weight=1&~zone=a", false),
            ("override://0.0.0.0/com.shop.Orders?weight=1&providerAddresses=10.0.0.8:1,10.0.0.7:20880", true),
            ("override://0.0.0.0/com.shop.Orders?weight=1&providerAddresses=10.0.0.7:1", false),
            ("override://0.0.0.0/com.shop.Orders?weight=1&configVersion=v2.7&side=provider", true),
            ("override://0.0.0.0/com.shop.Orders?weight=1&configVersion=v2.7", false),
        ] {
            assert_eq!(shown(&rules(&[url]), "").0 == 1, applies, "{url}");
        }
        let keyed = "override://0.0.0.0/com.shop.Orders?weight=1&group=g&version=1.0";
        assert_eq!(shown(&rules(&[keyed]), "&group=g&version=1.0").0, 1);
    }

    #[test]
    fn an_entry_of_a_document_applies_only_to_what_it_names() {
        for (entry, applies) in [
            ("side: provider", true),
            ("side: consumer", true),
            ("enabled: true", false),
            ("side: provider, addresses: ['0.0.0.0']", true),
            ("side: provider, addresses: ['10.0.0.7:20880']", true),
            ("side: provider, addresses: ['10.0.0.7']", true),
            ("side: provider, addresses: ['10.0.0.7:1']", false),
            ("side: provider, addresses: ['0.0.0.0:20880', '10.0.0.8']", true),
            ("side: provider, addresses: ['0.0.0.0:*']", true),
            ("side: consumer, addresses: ['10.0.0.7']", false),
            ("side: consumer, providerAddresses: ['10.0.0.7:20880']", true),
            ("side: consumer, providerAddresses: ['10.0.0.8:20880']", false),
            ("side: provider, applications: [other, shop]", true),
            ("side: provider, applications: [other]", false),
            ("side: consumer, applications: [shop]", false),
            ("side: provider, enabled: false", true),
            ("side: provider, type: weight, enabled: true", true),
            ("side: provider, type: weight, enabled: false", false),
            ("side: provider, type: weight", false),
            ("side: provider, match: {address: {exact: 10.0.0.7}}", true),
            ("side: provider, match: {address: {cird: 10.0.0.0/29}}", true),
            ("side: provider, match: {address: {cird: 10.0.0.0/30}}", false),
            ("side: provider, match: {address: {wildcard: 10.0.*}}", true),
            ("side: provider, match: {address: {wildcard: 10.1.*}}", false),
            ("side: provider, match: {providerAddress: {exact: '10.0.0.7:20880'}}", true),
            ("side: provider, match: {service: {oneof: [{exact: com.shop.Orders}]}}", true),
            ("side: provider, match: {service: {oneof: [{prefix: com.bank}]}}", false),
            ("side: provider, match: {app: {oneof: [{wildcard: '*'}]}}", true),
            ("side: provider, match: {app: {oneof: []}}", false),
            ("side: consumer, match: {app: {oneof: [{exact: shop}]}}", false),
            ("side: consumer, match: {address: {wildcard: '*'}}", true),
            ("side: consumer, match: {address: {exact: 10.0.0.7}}", false),
            ("side: provider, match: {param: [{key: zone, value: {empty: ''}}]}", true),
            ("side: provider, match: {param: [{key: zone, value: {noempty: ''}}]}", false),
            ("side: provider, match: {param: [{key: application, value: {exact: shop}}]}", true),
        ] {
            let document = format!(
                "{{configVersion: v3.0, scope: service, key: {SERVICE}, configs: [{{{entry}, parameters: {{weight: '1'}}}}]}}"
            );
            assert_eq!(shown(&documents(&[&document]), "").0 == 1, applies, "{document}");
        }
        for (head, applies) in [
            ("scope: application, key: shop", true),
            ("scope: application, key: other", false),
            ("scope: application, enabled: false, key: shop", false),
            ("key: com.shop.Orders", true),
            ("key: 'com.shop.Orders:2.0'", false),
            ("key: 'com.shop.Orders::'", true),
        ] {
            let document = format!(
                "{{{head}, configs: [{{side: provider, services: ['*'], parameters: {{disabled: true}}}}]}}"
            );
            assert_eq!(!shown(&documents(&[&document]), "").1, applies, "{document}");
        }
        let list = r#"["override://0.0.0.0/com.shop.Orders?weight=1", "override://0.0.0.0/a?weight=2"]"#;
        assert_eq!(shown(&documents(&[list]), ""), (1, true));
    }

    #[test]
    fn an_invalid_rule_is_refused_with_its_reason() {
        for (url, why) in [
            ("override://0.0.0.0/a?weight=heavy", "weight must be a number of at least 0"),
            ("override://0.0.0.0/a?weight=-1", "weight must be a number of at least 0"),
            ("override://0.0.0.0/a?disabled=maybe", "disabled must be true or false"),
            ("override://0.0.0.0/a?priority=high", "priority must be a whole number"),
            ("override:///a?weight=1", "a rule must have a host"),
            ("route://0.0.0.0/a?weight=1", "scheme must be override, absent or empty"),
        ] {
            assert_eq!(Rule::of_url(&Url::parse(url).unwrap(), Origin::Folder).unwrap_err(), why, "{url}");
        }
        for (text, why) in [
            ("{", "invalid YAML in line 2, column 1"),
            ("a: 1", "invalid YAML"),
            ("key: a\nconfigs: [{side: provider}]", "entry 1: parameters must not be empty"),
            ("configs: [{side: provider, parameters: {weight: 1}}]", "entry 1: key is missing"),
            ("key: a\nconfigs: [{side: provider, parameters: {weight: x}}]", "entry 1: weight must be"),
            (
                "key: a\nconfigs: [{side: provider, parameters: {weight: 1}, match: {app: {oneof: [{regex: a}]}}}]",
                "entry 1: match with a regex is not supported",
            ),
            (
                "key: a\nconfigs: [{side: provider, parameters: {weight: 1}, match: {address: {cird: 10.0.0.0/33}}}]",
                "entry 1: match with a cird must be",
            ),
            ("[\"secret\"]", "not a URL"),
        ] {
            let reason = document::parse(text.as_bytes()).unwrap_err();
            assert!(reason.contains(why) && !reason.contains("secret"), "{text}: {reason}");
        }
        let (nested, long) = ("[".repeat(1 << 16), " ".repeat((1 << 16) + 1));
        let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (before, level) in ('a'..='y').zip('b'..='z') {
            let references = vec![format!("*{before}"); 9].join(", ");
            bomb += &format!("{level}: &{level} [{references}]\n");
        }
        bomb += "key: a\nconfigs: *z\n";
        for hostile in [nested, long, bomb] {
            assert!(document::parse(hostile.as_bytes()).is_err());
        }
        assert!(document::parse(b"\xff").unwrap_err().contains("not UTF-8"));
        assert!(document::parse(b" \n").unwrap().is_empty());
    }

    fn url() -> impl Strategy<Value = String> {
        let host =
            prop::sample::select(vec!["0.0.0.0", "10.0.0.7", "10.0.0.7:20880", "10.0.0.8:1", "[::1]:1"]);
        let scheme = prop::sample::select(vec!["override", "absent"]);
        let pairs = prop::sample::select(vec![
            "&disabled=true",
            "&disabled=false",
            "&side=provider",
            "&application=shop",
            "",
        ]);
        (scheme, host, 0_u32..1000, -2_i64..3, pairs).prop_map(|(scheme, host, weight, priority, pairs)| {
            format!("{scheme}://{host}/com.shop.Orders?weight={weight}&priority={priority}{pairs}")
        })
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_or_the_rules_panic(text in ".*", data in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = document::parse(&data);
            let _ = document::parse(text.as_bytes());
            if let Ok(url) = Url::parse(&format!("override://{text}")) {
                let rules = RuleSet::new(Rule::of_url(&url, Origin::Folder).ok().flatten().into_iter().collect());
                let _ = shown(&rules, "");
            }
            let _ = RuleSet::default().overlay(SERVICE, &text);
        }

        #[test]
        fn documents_with_odd_values_never_panic(
            value in "[a-z0-9:*/.\\[\\]{}' -]{0,12}",
            place in prop::sample::select(vec!["side", "addresses", "key", "parameters", "match", "enabled"]),
        ) {
            let text = format!("key: a\nconfigs:\n- side: provider\n  parameters: {{weight: 1}}\n  {place}: {value}\n");
            if let Ok(rules) = document::parse(text.as_bytes()) {
                let _ = shown(&RuleSet::new(rules), "");
            }
        }

        /// The strongest matching override decides, regardless of the order in which rules were listed.
        #[test]
        fn the_result_is_that_of_the_last_rule_in_dubbos_order(urls in prop::collection::btree_set(url(), 0..8)) {
            let urls: Vec<_> = urls.iter().map(String::as_str).collect();
            let set = rules(&urls);
            let mut reversed: Vec<_> = urls.clone();
            reversed.sort_by(|one, other| other.cmp(one));
            let key = |url: &&str| {
                let parsed = Url::parse(url).unwrap();
                (parsed.host.unwrap(), parsed.parameters["priority"].parse::<i64>().unwrap())
            };
            let applying = |url: &&&str| {
                let url = Url::parse(url).unwrap();
                url.scheme == "override"
                    && (url.host.as_deref() == Some("0.0.0.0")
                        || (url.host.as_deref() == Some("10.0.0.7") && url.port == Some(20880)))
            };
            let mut overrides: Vec<_> = urls.iter().filter(applying).collect();
            overrides.sort_by_key(|url| key(url));
            let last = overrides.last().map(|url| Url::parse(url).unwrap().parameters["weight"].parse::<u32>().unwrap());
            if let Some(last) = last {
                prop_assert_eq!(shown(&set, "").0, last);
            }
            // Rules with different hosts or priorities have one order.
            let keys: std::collections::BTreeSet<_> = urls.iter().map(key).collect();
            if keys.len() == urls.len() {
                prop_assert_eq!(shown(&rules(&reversed), ""), shown(&set, ""));
            }
        }
    }
}
