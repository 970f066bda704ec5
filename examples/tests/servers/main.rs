//! Runs the examples as a client would: as processes, on their standard streams, in both eras.

mod asking;
mod client;
mod demo;
mod minimal;
mod readme;
