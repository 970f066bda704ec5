//! Stories of two machines.

mod calls;
mod eras;
mod subscriptions;
