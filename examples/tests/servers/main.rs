//! Runs the examples as a client would: as processes, on their standard streams and over HTTP, in both eras.

mod asking;
mod authorization_server;
mod basket;
mod client;
mod clients;
mod demo;
mod http;
mod kernel_driver;
mod logging_in;
mod minimal;
mod readme;
mod render_farm;
