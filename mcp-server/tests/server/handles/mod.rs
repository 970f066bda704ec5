//! State between calls, by handles.

mod arguments;
mod building;
mod changes;
mod shop;
mod validity;
