//! Messages in the tokens of Rust files.

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::str::FromStr;

/// Macros of log events, which are their levels.
pub(super) const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Macros whose first text is an error.
const ERRORS: [&str; 4] = ["panic", "bail", "ensure", "anyhow"];

/// Derives of types whose documentation is the help of a command.
const HELP: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// A call of a log macro.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) line: usize,
    pub(super) level: &'static str,
    pub(super) message: String,
    pub(super) fields: Vec<String>,
    /// Stable target, if the macro names one.
    pub(super) target: Option<String>,
}

/// Text that users read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) line: usize,
    pub(super) text: String,
}

/// The texts of a file.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) events: Vec<Event>,
    /// Errors and help, without the events.
    pub(super) messages: Vec<Message>,
}

impl Texts {
    /// Returns the texts in `text`, which is code, without those of tests.
    pub(super) fn of(text: &str) -> Result<Self> {
        let tokens = TokenStream::from_str(text).ok().context("the file has no valid tokens")?;
        let mut texts = Self::default();
        texts.walk(tokens);
        Ok(texts)
    }

    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut index = 0;
        while index < tokens.len() {
            let rest = &tokens[index..];
            if let Some(length) = test_module(rest) {
                index += length;
                continue;
            }
            self.macro_call(rest);
            self.attribute(rest);
            self.display(rest);
            self.help(rest);
            if let TokenTree::Group(group) = &rest[0] {
                self.walk(group.stream());
            }
            index += 1;
        }
    }

    /// `warn!(…)`, `bail!("…")`.
    fn macro_call(&mut self, tokens: &[TokenTree]) {
        let [TokenTree::Ident(name), TokenTree::Punct(mark), TokenTree::Group(arguments), ..] = tokens else {
            return;
        };
        if mark.as_char() != '!' {
            return;
        }
        let line = name.span().start().line;
        if let Some(level) = LEVELS.into_iter().find(|level| name == level) {
            self.events.extend(event(line, level, arguments));
        } else if ERRORS.iter().any(|error| name == error) {
            self.messages.extend(first_text(arguments.stream()));
        }
    }

    /// `#[error("…")]`.
    fn attribute(&mut self, tokens: &[TokenTree]) {
        if let [TokenTree::Ident(name), TokenTree::Group(arguments), ..] = tokens
            && name == "error"
        {
            self.messages.extend(first_text(arguments.stream()));
        }
    }

    /// All texts of an `impl Display`.
    fn display(&mut self, tokens: &[TokenTree]) {
        let is = |token: &TokenTree, name: &str| matches!(token, TokenTree::Ident(ident) if ident == name);
        if !is(&tokens[0], "impl") {
            return;
        }
        let header = tokens.iter().position(|token| braces(token).is_some()).unwrap_or(0);
        if tokens[..header].iter().any(|token| is(token, "Display")) {
            let body = braces(&tokens[header]).map(Group::stream);
            texts(body.unwrap_or_default(), &mut self.messages);
        }
    }

    /// Documentation of a type that derives the arguments of a command, and of its fields.
    fn help(&mut self, tokens: &[TokenTree]) {
        if !derives(&tokens[0]) {
            return;
        }
        // Attributes of a type may come before and after the one that derives.
        let body = tokens.iter().find_map(braces).map(Group::stream);
        documentation(body.unwrap_or_default(), &mut self.messages);
    }
}

/// Number of tokens of `#[cfg(test)] mod name { … }`, if `tokens` begin with it.
fn test_module(tokens: &[TokenTree]) -> Option<usize> {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), rest @ ..] = tokens else { return None };
    if hash.as_char() != '#' || attribute.stream().to_string().replace(' ', "") != "cfg(test)" {
        return None;
    }
    let end = rest.iter().position(|token| {
        braces(token).is_some() || matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';')
    })?;
    rest[..end]
        .iter()
        .any(|token| matches!(token, TokenTree::Ident(name) if name == "mod"))
        .then_some(end + 3)
}

fn braces(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}

/// True for the brackets of `#[derive(…)]` with a type of a command's arguments.
fn derives(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    let mut tokens = group.stream().into_iter();
    let is_derive = matches!(tokens.next(), Some(TokenTree::Ident(name)) if name == "derive");
    let Some(TokenTree::Group(names)) = tokens.next().filter(|_| is_derive) else { return false };
    names
        .stream()
        .into_iter()
        .any(|token| matches!(token, TokenTree::Ident(name) if HELP.iter().any(|help| name == help)))
}

fn event(line: usize, level: &'static str, arguments: &Group) -> Option<Event> {
    let (mut fields, mut target) = (Vec::new(), None);
    for argument in arguments_of(arguments.stream()) {
        match &argument[..] {
            [token] if text(token).is_some() => {
                let message = text(token).map(|message| message.text)?;
                return Some(Event { line, level, message, fields, target });
            }
            [TokenTree::Ident(name), TokenTree::Punct(colon), value, ..]
                if colon.as_char() == ':' && (name == "target" || name == "parent") =>
            {
                if name == "target" {
                    target = text(value).map(|target| target.text);
                }
            }
            tokens => fields.push(field(tokens)),
        }
    }
    None
}

/// The parts between commas.
fn arguments_of(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut parts = vec![Vec::new()];
    for token in tokens {
        match &token {
            TokenTree::Punct(comma) if comma.as_char() == ',' => parts.push(Vec::new()),
            _ => parts.last_mut().into_iter().for_each(|part| part.push(token.clone())),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Name of a field: `path` in `path = …`, `%path` and `?path`.
fn field(tokens: &[TokenTree]) -> String {
    let name =
        tokens.iter().take_while(|token| !matches!(token, TokenTree::Punct(mark) if mark.as_char() == '='));
    let name = name.map(ToString::to_string).collect::<String>();
    name.trim_start_matches(['%', '?']).to_owned()
}

/// The first text in `tokens`, also inside of groups.
fn first_text(tokens: TokenStream) -> Option<Message> {
    let mut found = Vec::new();
    texts(tokens, &mut found);
    found.into_iter().next()
}

/// All texts in `tokens`, in order.
fn texts(tokens: TokenStream, found: &mut Vec<Message>) {
    for token in tokens {
        match &token {
            TokenTree::Group(group) => texts(group.stream(), found),
            _ => found.extend(text(&token)),
        }
    }
}

/// The lines of documentation in `tokens`.
fn documentation(tokens: TokenStream, found: &mut Vec<Message>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        let inner: Vec<_> = group.stream().into_iter().collect();
        match &inner[..] {
            [TokenTree::Ident(name), TokenTree::Punct(_), line] if name == "doc" => found.extend(text(line)),
            _ if index > 0 => documentation(group.stream(), found),
            _ => {}
        }
    }
}

/// The content of a literal that is a text.
fn text(token: &TokenTree) -> Option<Message> {
    let TokenTree::Literal(literal) = token else { return None };
    let line = literal.span().start().line;
    let source = literal.to_string();
    let inner = source.trim_start_matches(['r', '#']).trim_end_matches('#');
    let inner = inner.strip_prefix('"')?.strip_suffix('"')?;
    Some(Message { line, text: unescaped(inner) })
}

/// `text` without escapes, and on one line.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push(' '),
            Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(code: &str) -> Vec<String> {
        Texts::of(code).unwrap().messages.into_iter().map(|message| message.text).collect()
    }

    #[test]
    fn an_event_has_its_level_message_and_fields() {
        let code = "fn a() {\n    tracing::warn!(target: \"docent::lock\", client = %x.y(), %path, ?cause, n, \"cannot read \\\n    the node\");\n}";
        let found = Texts::of(code).unwrap();
        let fields = ["client", "path", "cause", "n"].map(str::to_owned).to_vec();
        let message = "cannot read the node".to_owned();
        let target = Some("docent::lock".to_owned());
        assert_eq!(found.events, [Event { line: 2, level: "warn", message, fields, target }]);
    }

    #[test]
    fn errors_are_found_in_attributes_macros_and_impls_of_display() {
        assert_eq!(messages("enum E { #[error(\"no {0}\")] A(u8) }"), ["no {0}"]);
        assert_eq!(messages("fn a() { ensure!(x > 0, \"x is {}\", x) }"), ["x is {}"]);
        assert_eq!(
            messages("impl fmt::Display for E { fn fmt(&self) { if a { f(\"one\") } else { f(\"two\") } } }"),
            ["one", "two"]
        );
        assert!(messages("impl fmt::Debug for E { fn fmt(&self) { f(\"one\") } }").is_empty());
    }

    #[test]
    fn the_help_of_a_command_is_found_and_other_documentation_is_not() {
        let code =
            "#[derive(Debug, Args)]\nstruct A {\n    /// The path.\n    #[arg(long)]\n    path: String,\n}";
        assert_eq!(messages(code), ["The path."]);
        assert!(messages("#[derive(Debug)]\nstruct A {\n    /// The path.\n    path: String,\n}").is_empty());
    }

    #[test]
    fn tests_have_no_messages() {
        let code =
            "#[cfg(test)]\nmod tests { fn a() { warn!(\"b\"); panic!(\"c\") } }\nfn d() { panic!(\"e\") }";
        assert!(Texts::of(code).unwrap().events.is_empty());
        assert_eq!(messages(code), ["e"]);
    }
}
