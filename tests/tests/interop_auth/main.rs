//! Logging in with the software of others: a certified authorization server, a browser, and the protected servers and clients of
//! the official packages.
//!
//! What they offer is in `interop/auth/README.md`. `interop/install` has to be run before, and Chromium has to be there.

mod our_client;
mod our_server;
mod person;
mod program;
mod their_clients;
mod watched_store;
