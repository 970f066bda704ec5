//! Several instances of a server that share a store of sessions: clients are sent from one to the other.

mod events;
mod faults;
mod kit;
mod layered;
mod moving;
mod records;
