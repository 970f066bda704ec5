//! Clients over HTTP: with our own server, and with servers that behave badly.

mod answers;
mod authorizing;
mod eras;
mod headers;
mod kit;
mod listening;
mod old;
mod own;
mod sessions;
mod streams;
mod switching;
