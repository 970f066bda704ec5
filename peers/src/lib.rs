//! What the benches have in common: how to measure, how to count, how to report.

pub mod allocations;
pub mod measure;
pub mod operations;
pub mod report;
pub mod versions;
