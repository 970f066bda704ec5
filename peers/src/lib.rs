//! What the benches have in common: how to measure, how to count, how to report.

pub mod aims;
pub mod allocations;
pub mod footprint;
pub mod http;
pub mod measure;
pub mod operations;
pub mod process;
pub mod processors;
pub mod records;
pub mod redis;
pub mod report;
pub mod statistics;
pub mod table;
pub mod usage;
pub mod versions;
pub mod watchdog;
