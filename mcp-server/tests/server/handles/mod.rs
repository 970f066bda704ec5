//! State between calls, by handles.

mod arguments;
mod building;
mod changes;
mod logs;
mod shop;
mod validity;
