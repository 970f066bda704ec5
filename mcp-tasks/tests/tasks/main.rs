//! Servers with tasks, as clients of both models see them.

mod core_model;
mod delayed;
mod durable;
mod dying_store;
mod extension;
mod faults;
mod http;
mod kit;
mod limits;
mod listening;
mod owners;
mod running;
mod tools;
mod watching;
