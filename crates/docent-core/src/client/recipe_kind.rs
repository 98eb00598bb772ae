use super::Stage;

/// Description of a recipe for the core crate. Each recipe has one `static` of this type.
///
/// ```
/// use docent_core::recipe::{RecipeKind, Stage};
///
/// static RATE_LIMIT: RecipeKind = RecipeKind::new("rate_limit", "acquire").also(&["refill"]);
/// static IMPORT: RecipeKind = RecipeKind::new("import", "take").released_in(Stage::Deliveries);
/// ```
#[derive(Debug)]
pub struct RecipeKind {
    label: &'static str,
    acquire: &'static str,
    other_methods: &'static [&'static str],
    stage: Stage,
}

impl RecipeKind {
    /// Creates a recipe with the value `label` for the label `recipe` of its metrics, spans and log messages.
    /// Recipes with the same label share their metrics. `acquire` is the method that returns a guard; errors
    /// of a [`Line`](crate::recipe::Line) name it.
    ///
    /// A [shutdown](crate::Client::shutdown) releases the recipe's guards in [`Stage::Locks`].
    pub const fn new(label: &'static str, acquire: &'static str) -> Self {
        Self { label, acquire, other_methods: &[], stage: Stage::Locks }
    }

    /// Names the other methods that send requests. The metric `docent_retries_total` has a series for each
    /// method, which starts at zero with the recipe's first handle.
    #[must_use]
    pub const fn also(mut self, methods: &'static [&'static str]) -> Self {
        self.other_methods = methods;
        self
    }

    /// Releases the recipe's guards in this stage of a [shutdown](crate::Client::shutdown) instead.
    ///
    /// # Panics
    /// If `stage` is not one of [`Elections`](Stage::Elections), [`Deliveries`](Stage::Deliveries) and
    /// [`Locks`](Stage::Locks). In a `static` this is a compile error.
    #[must_use]
    pub const fn released_in(mut self, stage: Stage) -> Self {
        assert!(
            matches!(stage, Stage::Elections | Stage::Deliveries | Stage::Locks),
            "guards are released in one of the stages Elections, Deliveries and Locks"
        );
        self.stage = stage;
        self
    }

    /// Returns the value of the label `recipe`.
    pub const fn label(&self) -> &'static str {
        self.label
    }

    pub(crate) const fn acquire(&self) -> &'static str {
        self.acquire
    }

    pub(crate) const fn stage(&self) -> Stage {
        self.stage
    }

    pub(crate) fn operations(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.acquire).chain(self.other_methods.iter().copied())
    }
}
