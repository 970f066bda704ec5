//! Something that grows, and what an operation costs at some of its sizes.

use peers::operations::{self, Operation};
use peers::records::{self, Unit};
use peers::table::{Table, known, micros};

pub(crate) struct Dimension {
    title: String,
    /// What grows.
    unit: &'static str,
    /// Why the cost grows, if it does.
    reason: &'static str,
    /// The sizes, and by what the costs are divided: of what is proportional, the cost of one is told.
    sizes: Vec<(usize, usize)>,
    /// What is done at each size.
    pub(crate) operations: Vec<Operation>,
}

/// More than this is growth.
const FLAT: f64 = 1.1;

/// More than this is growth in time, which also has noise.
const SLOWER: f64 = 1.25;

impl Dimension {
    pub(crate) fn new(title: impl Into<String>, unit: &'static str, reason: &'static str) -> Self {
        Self { title: title.into(), unit, reason, sizes: Vec::new(), operations: Vec::new() }
    }

    /// Adds a size, of which an operation costs `per` times what is told, and is run so many times to be counted.
    pub(crate) fn at<F: FnMut() + 'static>(
        mut self,
        size: usize,
        per: usize,
        times: u32,
        prepare: impl Fn() -> F + 'static,
    ) -> Self {
        self.operations.push(Operation::new(format!("{}, {size}", self.title), times, prepare));
        self.sizes.push((size, per));
        self
    }

    /// Measures, shows the costs, and says whether they are flat.
    pub(crate) fn report(&self) -> Result<String, String> {
        let mut table = Table::new(&self.title, &[self.unit, "µs", "instructions", "allocations", "bytes"]);
        let mut counted = Vec::new();
        let costs = operations::measure(&self.operations);
        for (((size, per), operation), cost) in self.sizes.iter().zip(&self.operations).zip(costs) {
            let per = *per as f64;
            let instructions = operations::instructions(operation)?.map(|count| count / per);
            counted.push((*size, instructions, cost.nanoseconds / per));
            let bar = format!("{size} {}", self.unit);
            records::figure(&self.title, Unit::Microseconds, &bar, Some(cost.nanoseconds / per / 1e3));
            table.add(vec![
                size.to_string(),
                micros(cost.nanoseconds / per),
                known(instructions.map(|count| format!("{count:.0}"))),
                format!("{:.1}", cost.allocations.count as f64 / per),
                format!("{:.0}", cost.allocations.bytes as f64 / per),
            ]);
        }
        Ok(format!("{table}{}\n", self.verdict(&counted)))
    }

    fn verdict(&self, counted: &[(usize, Option<f64>, f64)]) -> String {
        let [(few, first, first_time), .., (many, last, last_time)] = counted else { return String::new() };
        let time = last_time / first_time;
        let (factor, measure) = match first.zip(*last) {
            Some((first, last)) => (last / first, "instructions"),
            None => (time, "time"),
        };
        let sizes = format!("from {few} to {many} {}", self.unit);
        match factor {
            ..FLAT if time < SLOWER => format!("{sizes}: flat ({measure} x {factor:.2}, time x {time:.2})"),
            ..FLAT => format!("{sizes}: {measure} x {factor:.2}, time x {time:.2}: more memory than the caches have"),
            _ => format!("{sizes}: {measure} x {factor:.2}, time x {time:.2}: {}", self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_has_a_reason() {
        let dimension = Dimension::new("calls", "tools", "because");
        let flat = dimension.verdict(&[(1, Some(100.0), 1.0), (10, Some(101.0), 1.1)]);
        assert_eq!(flat, "from 1 to 10 tools: flat (instructions x 1.01, time x 1.10)");
        let slower = dimension.verdict(&[(1, Some(100.0), 1.0), (10, Some(101.0), 3.0)]);
        assert_eq!(slower, "from 1 to 10 tools: instructions x 1.01, time x 3.00: more memory than the caches have");
        let grown = dimension.verdict(&[(1, None, 1.0), (10, Some(101.0), 3.0)]);
        assert_eq!(grown, "from 1 to 10 tools: time x 3.00, time x 3.00: because");
    }
}
