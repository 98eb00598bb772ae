use docent_core::Error;
use docent_core::recipe::NodePath;
use std::fmt;
use std::str::FromStr;

/// A path with parameters for some of its segments, such as `/shops/{shop}/orders/{id}`.
///
/// A parameter is a whole segment with a name that is not empty. Use `parse` to create a template from text.
///
/// ```
/// use docent_config::PathTemplate;
///
/// let orders: PathTemplate = "/shops/{shop}/orders/{id}".parse()?;
/// assert_eq!(orders.path(&[("shop", "eu"), ("id", "17")])?, "/shops/eu/orders/17");
/// # Ok::<(), docent_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathTemplate {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Segment {
    Text(String),
    Parameter(String),
}

impl PathTemplate {
    /// Returns the path with these values for the parameters, in any order.
    ///
    /// # Errors
    /// `InvalidInput` if a parameter has no value or more than one, if a value is for an unknown parameter,
    /// is empty or contains a `/`, or if the path breaks a rule.
    pub fn path(&self, values: &[(&str, &str)]) -> Result<String, Error> {
        for (index, (name, _)) in values.iter().enumerate() {
            if !self.parameters().any(|parameter| parameter == *name) {
                return Err(self.refuse(&format!("has no parameter {name:?}")));
            }
            if values[..index].iter().any(|(earlier, _)| earlier == name) {
                return Err(self.refuse(&format!("must have one value for {name:?}")));
            }
        }
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            path.push_str(match segment {
                Segment::Text(text) => text,
                Segment::Parameter(name) => self.value(name, values)?,
            });
        }
        Ok(NodePath::new("template", path)?.into())
    }

    /// Returns the names of the parameters, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Text(_) => None,
            Segment::Parameter(name) => Some(name.as_str()),
        })
    }

    fn value<'a>(&self, name: &str, values: &[(&str, &'a str)]) -> Result<&'a str, Error> {
        match values.iter().find(|(given, _)| *given == name) {
            None => Err(self.refuse(&format!("must have a value for {name:?}"))),
            Some((_, value)) if value.is_empty() || value.contains('/') => {
                let rule = format!("value {value:?} of {name:?} must be one segment of a path");
                Err(self.refuse(&rule))
            }
            Some((_, value)) => Ok(value),
        }
    }

    fn refuse(&self, rule: &str) -> Error {
        refused(&self.text, rule)
    }
}

fn refused(text: &str, rule: &str) -> Error {
    Error::invalid_input("template", format!("path template {text:?}: {rule}"))
}

impl FromStr for PathTemplate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let rest = text.strip_prefix('/').ok_or_else(|| refused(text, "must start with '/'"))?;
        let segments = rest.split('/').map(|segment| Segment::parse(text, segment));
        let template = Self { text: text.to_owned(), segments: segments.collect::<Result<_, _>>()? };
        let names: Vec<_> = template.parameters().collect();
        if let Some(twice) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
            return Err(template.refuse(&format!("must have the parameter {:?} only once", twice.1)));
        }
        // With a value for each parameter, the template must be a valid path.
        let values: Vec<_> = names.iter().map(|name| (*name, "x")).collect();
        template.path(&values)?;
        Ok(template)
    }
}

impl Segment {
    fn parse(template: &str, segment: &str) -> Result<Self, Error> {
        match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) if !name.is_empty() && !name.contains(['{', '}']) => {
                Ok(Self::Parameter(name.to_owned()))
            }
            None if !segment.contains(['{', '}']) => Ok(Self::Text(segment.to_owned())),
            _ => Err(refused(template, "must have parameters that are whole segments, such as \"{name}\"")),
        }
    }
}

impl fmt::Display for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(template: &str, values: &[(&str, &str)]) -> String {
        let path = template.parse::<PathTemplate>().and_then(|template| template.path(values));
        path.unwrap_err().to_string()
    }

    #[test]
    fn parameters_are_filled_in_by_their_names() {
        let template: PathTemplate = "/shops/{shop}/orders/{id}".parse().unwrap();
        assert_eq!(template.parameters().collect::<Vec<_>>(), ["shop", "id"]);
        assert_eq!(template.path(&[("id", "{7}"), ("shop", "eu")]).unwrap(), "/shops/eu/orders/{7}");
        assert_eq!("/fixed".parse::<PathTemplate>().unwrap().path(&[]).unwrap(), "/fixed");
        assert_eq!(template.to_string(), "/shops/{shop}/orders/{id}");
    }

    #[test]
    fn an_invalid_path_is_reported_with_its_rule() {
        let whole = "must have parameters that are whole segments, such as \"{name}\"";
        for (template, values, rule) in [
            ("a/{b}", &[][..], "must start with '/'"),
            ("/a{b}", &[], whole),
            ("/{}", &[], whole),
            ("/{a{b}", &[], whole),
            ("/{a}/{a}", &[], "must have the parameter \"a\" only once"),
            ("/{a}", &[], "must have a value for \"a\""),
            ("/{a}", &[("b", "1")], "has no parameter \"b\""),
            ("/{a}", &[("a", "1"), ("a", "2")], "must have one value for \"a\""),
            ("/{a}", &[("a", "")], "value \"\" of \"a\" must be one segment of a path"),
            ("/{a}", &[("a", "b/c")], "value \"b/c\" of \"a\" must be one segment of a path"),
        ] {
            assert_eq!(refusal(template, values), format!("template: path template {template:?}: {rule}"));
        }
        assert!(refusal("/a/", &[]).contains("path \"/a/\""));
        assert!(refusal("/{a}", &[("a", "..")]).contains("path \"/..\""));
        assert!(refusal("/", &[]).contains("must not be the root"));
    }
}
