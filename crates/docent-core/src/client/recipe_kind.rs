use super::Stage;

/// A recipe, as the core crate knows it. A recipe has one `static` of this type.
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
    others: &'static [&'static str],
    stage: Stage,
}

impl RecipeKind {
    /// A recipe with the value `label` for the label `recipe` of its metrics, spans and log messages. Recipes
    /// with the same label share their metrics. `acquire` is the method that returns a guard: errors of a
    /// [`Line`](crate::recipe::Line) name it.
    ///
    /// A [shutdown](crate::Client::shutdown) releases its guards in [`Stage::Locks`].
    pub const fn new(label: &'static str, acquire: &'static str) -> Self {
        Self { label, acquire, others: &[], stage: Stage::Locks }
    }

    /// Names the other methods that send requests of their own. The metric `docent_retries_total` has a
    /// series for each method, which is zero from the recipe's first handle on.
    #[must_use]
    pub const fn also(mut self, methods: &'static [&'static str]) -> Self {
        self.others = methods;
        self
    }

    /// Releases its guards in this stage of a [shutdown](crate::Client::shutdown) instead.
    ///
    /// # Panics
    /// If `stage` is none of [`Elections`](Stage::Elections), [`Deliveries`](Stage::Deliveries) and
    /// [`Locks`](Stage::Locks). In a `static` this is an error of the compiler.
    #[must_use]
    pub const fn released_in(mut self, stage: Stage) -> Self {
        assert!(
            matches!(stage, Stage::Elections | Stage::Deliveries | Stage::Locks),
            "guards are released in one of the stages Elections, Deliveries and Locks"
        );
        self.stage = stage;
        self
    }

    /// Value of the label `recipe`.
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
        std::iter::once(self.acquire).chain(self.others.iter().copied())
    }
}
