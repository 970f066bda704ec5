//! Compares clients: calls in memory, over standard streams and over HTTP, and what they bring along.

mod clients;
mod report;
mod rounds;

use std::process::ExitCode;

use peers::aims::Aims;
use peers::process::{Process, pinned};
use peers::processors::{self, SERVER};
use peers::versions;

use crate::clients::{CLIENTS, Client, Way};
use crate::rounds::{DEPTHS, ROUNDS};

#[expect(clippy::print_stderr, reason = "a command-line tool talks to its user")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the report is what this is for")]
fn run() -> Result<(), String> {
    println!("{}, {}; {ROUNDS} rounds each, in turns", versions::named("rmcp"), versions::named("reqwest"));
    println!("{}\n", if processors::can_pin() { "servers on processor 0, clients on 1" } else { "NOT PINNED" });
    for client in CLIENTS {
        println!("{}: {}", client.name, client.about);
    }
    println!();
    let mut aims = Aims::default();
    let (server, url) = Process::start("http-ours", &pinned(SERVER, "http-ours")?)?;
    for way in [Way::Memory, Way::Stdio, Way::Http] {
        let clients: Vec<&Client> = CLIENTS.iter().filter(|client| client.way == way).collect();
        let start = |client: &&Client| Ok(Process::start(client.name, &client.command(url.trim())?)?.0);
        let mut processes = clients.iter().map(start).collect::<Result<Vec<_>, String>>()?;
        for depth in DEPTHS {
            let tallies = rounds::take_turns(&mut processes, depth)?;
            println!("{}", report::calls(way, depth, &clients, &tallies, &mut aims));
        }
        for process in processes {
            process.stop()?;
        }
    }
    server.stop()?;
    println!("{}", report::footprints(&mut aims));
    println!("{}", aims.table());
    Ok(())
}
