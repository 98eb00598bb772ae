use super::escaped;

/// Table for people: a heading and rows with the same number of cells. Cells are escaped for terminals.
#[derive(Debug)]
pub(crate) struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these columns and no rows.
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self { heading: heading.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        self.rows.push(cells.into_iter().map(|cell| escaped(cell.as_ref()).into_owned()).collect());
    }

    /// Returns the lines of the table, the heading first.
    pub(crate) fn lines(&self) -> Vec<String> {
        let width = |column: usize| {
            let cells = std::iter::once(&self.heading).chain(&self.rows);
            cells.filter_map(|cells| cells.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heading.len()).map(width).collect();
        std::iter::once(&self.heading).chain(&self.rows).map(|cells| line(cells, &widths)).collect()
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["NAME", "AGE"]);
        table.row(["a", "1 s"]);
        table.row(["longer\n", ""]);
        assert_eq!(table.lines(), ["NAME      AGE", "a         1 s", "longer\\n"]);
    }
}
