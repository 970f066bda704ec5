//! Several instances of a server that share a store of sessions: clients are sent from one to the other.

mod events;
mod kit;
mod moving;
mod records;
