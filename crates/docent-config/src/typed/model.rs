use super::{PathTemplate, TypedNode};
use crate::{Codec, Json};
use docent_core::recipe::debug_handle;
use docent_core::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;

/// Values of one type at the paths of a [template](PathTemplate). A model defines the codec and the place
/// in the tree once. Corresponds to Curator's `ModelSpec` together with `ModeledFramework`.
///
/// Cheap to clone.
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Order { lines: u32 }
/// # async fn example(client: docent_core::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use docent_config::NodeModel;
///
/// let orders = NodeModel::<Order>::new(&client, "/shops/{shop}/orders/{id}")?;
/// let order = orders.node(&[("shop", "eu"), ("id", "17")])?;
/// order.create(&Order { lines: 1 }).await?;
/// order.update(|now| Some(Order { lines: now?.lines + 1 })).await?;
/// # Ok(()) }
/// ```
pub struct NodeModel<T> {
    client: Client,
    template: Arc<PathTemplate>,
    codec: Arc<dyn Codec<T>>,
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> NodeModel<T> {
    /// Creates a model of JSON values at the paths of `template`.
    ///
    /// # Errors
    /// `InvalidInput` if the template breaks a rule.
    pub fn new(client: &Client, template: &str) -> Result<Self, Error> {
        Self::with_codec(client, template, Json::new())
    }
}

impl<T: Send + Sync + 'static> NodeModel<T> {
    /// Creates a model of values in a custom codec at the paths of `template`.
    ///
    /// # Errors
    /// `InvalidInput` if the template breaks a rule.
    pub fn with_codec(client: &Client, template: &str, codec: impl Codec<T>) -> Result<Self, Error> {
        let template = Arc::new(template.parse()?);
        Ok(Self { client: client.clone(), template, codec: Arc::new(codec) })
    }

    /// Returns the template of the paths.
    pub fn template(&self) -> &PathTemplate {
        &self.template
    }

    /// Returns the node with these values for the parameters of the template.
    ///
    /// # Errors
    /// `InvalidInput`, as for [`PathTemplate::path`].
    pub fn node(&self, values: &[(&str, &str)]) -> Result<TypedNode<T>, Error> {
        let path = self.template.path(values)?;
        TypedNode::from_parts(&self.client, &path, Arc::clone(&self.codec))
    }
}

impl<T> Clone for NodeModel<T> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            template: Arc::clone(&self.template),
            codec: Arc::clone(&self.codec),
        }
    }
}

impl<T> fmt::Debug for NodeModel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "NodeModel", &self.template.to_string(), &self.client).finish_non_exhaustive()
    }
}
