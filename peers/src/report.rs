//! Tables of comparisons, and of costs.

use std::fmt;

use crate::measure::{Comparison, Cost};
use crate::records::{self, Unit};

/// What a comparison should come out as.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Aim {
    /// Ours takes at most so many times as long as theirs.
    Ratio(f64),
    /// Ours takes less time, fewer allocations and fewer bytes than theirs.
    Ahead,
    /// Nothing is promised.
    None,
}

impl Aim {
    /// Says whether the comparison came out as it should.
    fn verdict(self, comparison: &Comparison) -> String {
        let (aim, met) = match self {
            Self::Ratio(limit) => (format!("{limit:.2}"), comparison.ratio() <= limit),
            Self::Ahead => ("ahead".to_owned(), is_ahead(comparison)),
            Self::None => return "no aim".to_owned(),
        };
        let met = if met { "met" } else { "MISSED" };
        format!("aim {aim}: {met}")
    }
}

fn is_ahead(Comparison { ours, theirs, .. }: &Comparison) -> bool {
    ours.nanoseconds < theirs.nanoseconds
        && ours.allocations.count < theirs.allocations.count
        && ours.allocations.bytes < theirs.allocations.bytes
}

/// Comparisons of one kind.
#[derive(Debug)]
pub struct Table {
    title: String,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    work: String,
    size: usize,
    comparison: Comparison,
    aim: Aim,
}

impl Table {
    /// Starts a table; the title says who competes.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), rows: Vec::new() }
    }

    /// Adds a comparison of work on a message of `size` bytes.
    pub fn add(&mut self, work: impl Into<String>, size: usize, aim: Aim, comparison: Comparison) {
        let work = work.into();
        let workload = format!("{}: {work}", self.title);
        for (name, cost) in [("ours", comparison.ours), ("theirs", comparison.theirs)] {
            records::figure(&workload, Unit::Microseconds, name, Some(cost.nanoseconds / 1e3));
        }
        self.rows.push(Row { work, size, comparison, aim });
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        let width = self.rows.iter().map(|row| row.work.chars().count()).max().unwrap_or_default();
        writeln!(
            f,
            "{:width$} {:>9} | {:^31} | {:^18} | {:^21} |",
            "", "message", "time, ns/op", "allocations/op", "bytes allocated/op"
        )?;
        writeln!(
            f,
            "{:width$} {:>9} | {:>11} {:>11} {:>7} | {:>8} {:>9} | {:>10} {:>10} |",
            "", "bytes", "ours", "theirs", "ratio", "ours", "theirs", "ours", "theirs"
        )?;
        for Row { work, size, comparison, aim } in &self.rows {
            let Comparison { ours, theirs, .. } = comparison;
            writeln!(
                f,
                "{work:width$} {:>9} | {:>11} {:>11} {:>7.3} | {:>8} {:>9} | {:>10} {:>10} | {}",
                grouped(*size as u64),
                grouped(ours.nanoseconds.round() as u64),
                grouped(theirs.nanoseconds.round() as u64),
                comparison.ratio(),
                grouped(ours.allocations.count),
                grouped(theirs.allocations.count),
                grouped(ours.allocations.bytes),
                grouped(theirs.allocations.bytes),
                aim.verdict(comparison),
            )?;
        }
        Ok(())
    }
}

/// What some operations cost, with what follows from that in columns of their own.
#[derive(Debug)]
pub struct Costs {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<(String, Cost, Vec<String>)>,
}

impl Costs {
    /// Starts a table; `columns` are the headings of what follows from the costs.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: Vec<&'static str>) -> Self {
        Self { title: title.into(), columns, rows: Vec::new() }
    }

    /// Adds an operation, with one cell for each column.
    pub fn add(&mut self, work: impl Into<String>, cost: Cost, cells: Vec<String>) {
        let work = work.into();
        records::figure(&self.title, Unit::Microseconds, &work, Some(cost.nanoseconds / 1e3));
        self.rows.push((work, cost, cells));
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        let width = self.rows.iter().map(|(work, ..)| work.chars().count()).max().unwrap_or_default();
        write!(f, "{:width$} | {:>11} | {:>11} | {:>11}", "", "ns/op", "allocs/op", "bytes/op")?;
        for column in &self.columns {
            write!(f, " | {column:>11}")?;
        }
        writeln!(f)?;
        for (work, cost, cells) in &self.rows {
            let nanoseconds = if cost.nanoseconds < 100.0 {
                format!("{:.1}", cost.nanoseconds)
            } else {
                grouped(cost.nanoseconds.round() as u64)
            };
            let (count, bytes) = (grouped(cost.allocations.count), grouped(cost.allocations.bytes));
            write!(f, "{work:width$} | {nanoseconds:>11} | {count:>11} | {bytes:>11}")?;
            for (cell, column) in cells.iter().zip(&self.columns) {
                write!(f, " | {cell:>width$}", width = column.chars().count().max(11))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Writes a number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_from_the_right() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
    }
}
