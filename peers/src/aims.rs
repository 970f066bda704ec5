//! Promises, and whether they were kept.

use crate::records;
use crate::table::{Table, known};

/// What is promised of ours, and what came out.
#[derive(Debug, Default)]
pub struct Aims(Vec<Aim>);

#[derive(Debug)]
struct Aim {
    what: String,
    least: Option<f64>,
    most: Option<f64>,
    value: Option<f64>,
}

impl Aims {
    /// Promises a value that is not below a limit.
    pub fn at_least(&mut self, what: impl Into<String>, limit: f64, value: Option<f64>) {
        self.0.push(Aim { what: what.into(), least: Some(limit), most: None, value });
    }

    /// Promises a value that is not above a limit.
    pub fn at_most(&mut self, what: impl Into<String>, limit: f64, value: Option<f64>) {
        self.0.push(Aim { what: what.into(), least: None, most: Some(limit), value });
    }

    /// Says of each promise whether this run kept it, and records that.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::new("What is promised of ours", &["", "aim", "in this run", ""]);
        for Aim { what, least, most, value } in &self.0 {
            let aim = match (least, most) {
                (Some(least), _) => format!("at least {least}"),
                (None, Some(most)) => format!("at most {most}"),
                (None, None) => known::<f64>(None),
            };
            // As it is printed: an allocation in some thousand calls, when a table grows, is none per call.
            let value = value.map(|value| (value * 100.0).round() / 100.0);
            let is_met =
                value.map(|value| least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most));
            records::aim(what, *least, *most, value, is_met);
            let verdict = is_met.map(|is_met| if is_met { "met" } else { "MISSED" });
            table.add(vec![what.clone(), aim, known(value.map(|value| format!("{value:.2}"))), known(verdict)]);
        }
        table
    }
}
