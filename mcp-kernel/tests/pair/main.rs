//! Stories of two machines.

mod calls;
mod eras;
mod kit;
mod subscriptions;
