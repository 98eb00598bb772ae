use super::escaped;
use std::borrow::Cow;

/// Width to which a terminal may narrow a column, in characters.
const NARROWEST: usize = 12;

/// Text between two columns.
const GAP: &str = "  ";

/// Table for people: a heading and rows with the same number of cells. Cells are escaped for terminals.
#[derive(Debug)]
pub(crate) struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Column whose cells a narrow terminal shortens.
    flexible: Option<usize>,
}

impl Table {
    /// Creates a table with these columns and no rows.
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self { heading: heading.map(str::to_owned).to_vec(), rows: Vec::new(), flexible: None }
    }

    /// Lets a narrow terminal shorten the cells of this column in their middle.
    pub(crate) fn flexible(mut self, name: &str) -> Self {
        self.flexible = self.heading.iter().position(|heading| heading == name);
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        self.rows.push(cells.into_iter().map(|cell| escaped(cell.as_ref()).into_owned()).collect());
    }

    /// Returns the lines of the table, the heading first. If they are wider than `available`, the cells of
    /// the [flexible](Self::flexible) column are shortened.
    pub(crate) fn lines(&self, available: Option<usize>) -> Vec<String> {
        let width = |column: usize| {
            let cells = std::iter::once(&self.heading).chain(&self.rows);
            cells.filter_map(|cells| cells.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.heading.len()).map(width).collect();
        let total = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        let excess = total.saturating_sub(available.unwrap_or(total));
        if let Some(width) = self.flexible.and_then(|column| widths.get_mut(column)) {
            *width = width.saturating_sub(excess).max(NARROWEST.min(*width));
        }
        std::iter::once(&self.heading).chain(&self.rows).map(|cells| line(cells, &widths)).collect()
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{:width$}", shortened(cell, *width)));
    padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
}

/// Shortens the middle of a text, because the beginning of a node's name shows its kind, and the end its
/// number.
fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= most {
        return text.into();
    }
    let (front, back) = ((most - 1) / 2, most / 2);
    let [front, back] =
        [&chars[..front], &chars[chars.len() - back..]].map(|part| part.iter().collect::<String>());
    format!("{front}…{back}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["NAME", "AGE"]);
        table.row(["a", "1 s"]);
        table.row(["longer\n", ""]);
        assert_eq!(table.lines(None), ["NAME      AGE", "a         1 s", "longer\\n"]);
    }

    #[test]
    fn a_narrow_terminal_shortens_the_middle_of_names_only() {
        let mut table = Table::new(["OWNER", "NAME"]).flexible("NAME");
        let name = "_c_9a794062-0b31-421c-9cfe-0699f14437da-lock-0000000001";
        table.row(["web-1 (pid 12)", name]);
        table.row(["ä", "short"]);
        let last = |available| table.lines(available)[1].clone();
        for all in [None, Some(200), Some(16 + name.len())] {
            assert_eq!(last(all), format!("web-1 (pid 12)  {name}"));
        }
        assert_eq!(last(Some(40)), "web-1 (pid 12)  _c_9a794062…k-0000000001");
        assert_eq!(last(Some(40)).chars().count(), 40);
        assert_eq!(last(Some(5)).chars().count(), 16 + NARROWEST);
        assert_eq!(table.lines(Some(40))[2], "ä               short");
    }
}
