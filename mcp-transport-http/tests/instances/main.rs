//! Several instances of a server that share a store of sessions: clients are sent from one to the other.

mod client;
mod deleting;
mod draining;
mod events;
mod faults;
mod layered;
mod migrating;
mod moving;
mod records;
mod stores;
