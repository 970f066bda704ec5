//! Runs the examples as a client would: as processes, on their standard streams and over HTTP, in both eras.

mod asking;
mod basket;
mod client;
mod clients;
mod demo;
mod http;
mod kernel_driver;
mod minimal;
mod readme;
