use super::LayeredConfig;
use crate::value::{Checks, Validate};
use docent_core::recipe::{InOperation, VersionedNode};
use docent_core::{Client, Error};
use serde::de::DeserializeOwned;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// Builder of a [`LayeredConfig`]. Its defaults are those of Spring Cloud Zookeeper.
#[must_use = "a builder does nothing until `build` is called"]
pub struct LayeredConfigBuilder<T> {
    client: Client,
    application: String,
    root: String,
    default_context: String,
    separator: String,
    profiles: Vec<String>,
    validate: Option<Arc<Validate<T>>>,
    shows_detail: bool,
}

impl<T: DeserializeOwned + Send + Sync + 'static> LayeredConfigBuilder<T> {
    pub(super) fn new(client: &Client, application: &str) -> Self {
        Self {
            client: client.clone(),
            application: application.to_owned(),
            root: "/config".to_owned(),
            default_context: "application".to_owned(),
            separator: ",".to_owned(),
            profiles: Vec::new(),
            validate: None,
            shows_detail: false,
        }
    }

    /// Sets the path of the node below which all layers are. Default `/config`.
    pub fn root(mut self, path: impl Into<String>) -> Self {
        self.root = path.into();
        self
    }

    /// Sets the name of the layers that all applications share. Default `application`.
    pub fn default_context(mut self, name: impl Into<String>) -> Self {
        self.default_context = name.into();
        self
    }

    /// Sets the text between the name of an application and a profile. Default `,`.
    pub fn profile_separator(mut self, separator: impl Into<String>) -> Self {
        self.separator = separator.into();
        self
    }

    /// Sets the active profiles, the weakest first. Default none.
    pub fn profiles<P: Into<String>>(mut self, profiles: impl IntoIterator<Item = P>) -> Self {
        self.profiles = profiles.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a rule that the whole value must satisfy beyond what its type guarantees. If a value violates the
    /// rule, or the rule panics, the last valid value stays.
    ///
    /// The rule runs once per change, on a thread for blocking code. While it takes longer than a second, the
    /// subscriptions are [stale](crate::LayeredSubscription::is_stale).
    ///
    /// The text of the rule's error becomes [`Rejection::detail`](crate::Rejection::detail). It is logged
    /// only with [`show_rejection_detail`](Self::show_rejection_detail).
    pub fn validate<E: Into<Box<dyn StdError + Send + Sync>>>(
        mut self,
        rule: impl Fn(&T) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.validate = Some(Arc::new(move |value| rule(value).map_err(|error| error.into().to_string())));
        self
    }

    /// Includes the invalid text or the message of the validation in the printed text of a
    /// [`Rejection`](crate::Rejection), and therefore in the log. By default only the key, its node and the
    /// violated rule are printed. Use this only for values without secrets.
    pub fn show_rejection_detail(mut self) -> Self {
        self.shows_detail = true;
        self
    }

    /// Creates the configuration.
    ///
    /// # Errors
    /// `InvalidInput` if the name of the application or of the default context, the separator or a profile is
    /// empty, if the separator or a profile contains a `/`, or if the path of a layer breaks a rule.
    pub fn build(self) -> Result<LayeredConfig<T>, Error> {
        for (what, text, is_name) in [
            ("application", &self.application, false),
            ("default context", &self.default_context, false),
            ("profile separator", &self.separator, true),
        ]
        .into_iter()
        .chain(self.profiles.iter().map(|profile| ("profile", profile, true)))
        {
            if text.is_empty() || (is_name && text.contains('/')) {
                let rule = if is_name { "must not be empty or contain '/'" } else { "must not be empty" };
                return Err(Error::invalid_input("config", format!("{what} {text:?} {rule}")));
            }
        }
        let layers = self.contexts().into_iter();
        let layers = layers.map(|path| VersionedNode::new(&self.client, &path).in_operation("config"));
        let layers = layers.collect::<Result<_, _>>()?;
        let path = format!("{}/{}", self.root_prefix(), self.application);
        let (validate, shows_detail) = (self.validate.clone(), self.shows_detail);
        let checks = Checks { path: path.into(), validate, shows_detail };
        Ok(LayeredConfig::from_parts(&self.client, layers, checks))
    }

    /// Returns the root without a `/` at its end.
    fn root_prefix(&self) -> &str {
        if self.root == "/" { "" } else { &self.root }
    }

    /// Returns the paths of the layers, the weakest first. A path that occurs twice counts at its strongest
    /// place.
    fn contexts(&self) -> Vec<String> {
        let mut contexts = Vec::new();
        for name in [&self.default_context, &self.application] {
            let base = format!("{}/{name}", self.root_prefix());
            let of_profiles =
                self.profiles.iter().map(|profile| format!("{base}{}{profile}", self.separator));
            for path in [base.clone()].into_iter().chain(of_profiles) {
                contexts.retain(|known| *known != path);
                contexts.push(path);
            }
        }
        contexts
    }
}

impl<T> Clone for LayeredConfigBuilder<T> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            application: self.application.clone(),
            root: self.root.clone(),
            default_context: self.default_context.clone(),
            separator: self.separator.clone(),
            profiles: self.profiles.clone(),
            validate: self.validate.clone(),
            shows_detail: self.shows_detail,
        }
    }
}

impl<T> fmt::Debug for LayeredConfigBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredConfigBuilder")
            .field("application", &self.application)
            .field("root", &self.root)
            .field("default_context", &self.default_context)
            .field("profiles", &self.profiles)
            .finish_non_exhaustive()
    }
}
