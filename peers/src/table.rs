//! A table of text.

use std::fmt;

/// Rows of cells under headings.
#[derive(Debug)]
pub struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Starts a table; the first heading is that of the column which names the rows.
    #[must_use]
    pub fn new(title: impl Into<String>, headings: &[&str]) -> Self {
        Self { title: title.into(), rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row, with one cell for each heading.
    pub fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    /// The first column names the row and is set left, the others right.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        writeln!(f, "{}\n", self.title)?;
        for row in &self.rows {
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if index == 0 {
                    write!(f, "{cell:width$}")?;
                } else {
                    write!(f, " | {cell:>width$}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Writes nanoseconds as microseconds; what is not a number is unknown.
#[must_use]
pub fn micros(nanoseconds: f64) -> String {
    let micros = nanoseconds / 1000.0;
    if micros.is_nan() {
        known::<f64>(None)
    } else if micros < 10.0 {
        format!("{micros:.2}")
    } else {
        format!("{micros:.1}")
    }
}

/// Writes what may be unknown.
#[must_use]
pub fn known<T: fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new("Title", &["", "µs"]);
        table.add(vec!["name".to_owned(), micros(12_345.0)]);
        assert_eq!(table.to_string(), "Title\n\n     |   µs\nname | 12.3\n");
    }

    #[test]
    fn what_is_unknown_is_a_dash() {
        assert_eq!(known(Some(1)), "1");
        assert_eq!((known::<u64>(None), micros(f64::NAN)), ("-".to_owned(), "-".to_owned()));
    }
}
