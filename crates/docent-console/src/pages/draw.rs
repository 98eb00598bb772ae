use maud::Markup;

/// A drawn page: its heading and parts.
pub(crate) struct Drawn {
    pub(crate) title: String,
    pub(crate) parts: Vec<Part>,
}

/// A part of a page that is sent to the browser when it changes.
pub(crate) enum Part {
    /// An element with this id.
    Block(&'static str, Markup),
    List(List),
}

/// A window of rows of a long list. The browser keeps only these rows.
pub(crate) struct List {
    pub(crate) rows: Rows,
    /// Ids and elements of the rows in the window.
    pub(crate) window: Vec<(String, Markup)>,
    /// Number of rows of the whole list.
    pub(crate) total: usize,
    /// Number of rows before the window.
    pub(crate) from: usize,
    /// Path and query of the page, to which `from` is added for other windows.
    pub(crate) address: String,
}

/// Element that holds the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// A table with these columns.
    Table(&'static [&'static str]),
    /// An ordered list: the line of a lock.
    Line,
}

/// Number of rows in a window.
pub(crate) const WINDOW: usize = 100;

impl List {
    /// Draws the window of `all` that begins at `from`.
    pub(crate) fn new<T>(
        rows: Rows,
        all: &[T],
        from: usize,
        address: String,
        row: impl Fn(usize, &T) -> (String, Markup),
    ) -> Self {
        // The list may have become shorter than the window's beginning.
        let from = from.min(all.len().saturating_sub(WINDOW));
        let window =
            all.iter().enumerate().skip(from).take(WINDOW).map(|(index, one)| row(index, one)).collect();
        Self { rows, window, total: all.len(), from, address }
    }
}
