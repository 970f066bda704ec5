//! Compares servers over HTTP: requests, streams, listeners, what they bring along.

mod answer;
mod client;
mod counts;
mod listeners;
mod process;
mod report;
mod request;
mod rounds;
mod servers;
mod sessions;
mod sweep;

use std::process::ExitCode;

use peers::aims::Aims;
use peers::http::Delay;
use peers::{processors, versions};

use crate::client::Client;
use crate::counts::Count;
use crate::listeners::{Audience, CHANGES, Listeners};
use crate::process::{Mode, Process, TOOLS, now};
use crate::report::{Delays, Load};
use crate::request::Kind;
use crate::rounds::{ROUNDS, Tally};
use crate::servers::{SERVERS, Server};

/// What is asked, and on how many connections.
const LOADS: &[Load] = &[
    Load { kind: Kind::Modern, connections: 1 },
    Load { kind: Kind::Modern, connections: 32 },
    Load { kind: Kind::Progress, connections: 1 },
    Load { kind: Kind::Progress, connections: 32 },
    Load { kind: Kind::Legacy, connections: 1 },
    Load { kind: Kind::Legacy, connections: 32 },
];

/// The same for servers with sessions.
const SESSION_LOADS: &[Load] = &[
    Load { kind: Kind::Session, connections: 1 },
    Load { kind: Kind::Session, connections: 32 },
    Load { kind: Kind::SessionProgress, connections: 32 },
];

/// How many streams are asked for where clients do not care when they send.
const DELAYED: usize = 1000;

/// How many tools there are where it is shown that their number does not matter.
const MANY_TOOLS: usize = 500;

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
    let packages = ["rmcp", "hyper", "serde_json"].map(versions::named).join(", ");
    println!("{packages}; {TOOLS} tools; {ROUNDS} rounds each, in turns");
    println!("{}\n", if processors::pin_driver() { "servers on processor 0, the driver on 1" } else { "NOT PINNED" });
    let has_others = std::env::args().any(|argument| argument == "--others");
    let servers = SERVERS.iter().filter(|server| has_others || !server.is_other);
    let (built, missing): (Vec<_>, Vec<_>) = servers.partition(|server| server.path().is_some());
    for server in &built {
        println!("{}: {}", server.name, server.about);
    }
    for server in missing {
        println!("{}: not built, and left out", server.name);
    }
    println!();

    let mut aims = Aims::default();
    if std::env::args().any(|argument| argument == "--only-counts") {
        println!("{}\n{}", counted(&built, &mut aims)?, aims.table());
        return Ok(());
    }
    let only_sessions = std::env::args().any(|argument| argument == "--only-sessions");
    for (mode, loads) in [(Mode::NoSessions, LOADS), (Mode::Sessions, SESSION_LOADS)] {
        if only_sessions && mode == Mode::NoSessions {
            continue;
        }
        let processes = built.iter().map(|server| Process::start(server, mode)).collect::<Result<Vec<_>, _>>()?;
        for load in loads {
            let tallies = take_turns(&built, &processes, *load)?;
            println!("{}", report::load(*load, &built, &tallies, &mut aims));
        }
        for process in processes {
            process.stop()?;
        }
    }

    println!("{}", report::sessions(&built, &costs_of_sessions(&built)?, &mut aims));
    println!("{}", report::delays(&built, &delays(&built)?, &mut aims));
    println!("{}", report::sweeps(sweep::costs()?, &mut aims));
    for audience in [Audience::Subscriptions, Audience::Sessions] {
        let (changes, memory) = changes(&built, audience)?;
        println!("{}", report::changes(audience, &built, &changes, &memory, &mut aims));
    }
    if !only_sessions {
        println!("{}", counted(&built, &mut aims)?);
        println!("{}", report::footprints(&built, &mut aims));
    }
    println!("{}", aims.table());
    Ok(())
}

/// Has the servers take turns with one kind of load; what a server does not support is left out.
#[expect(clippy::print_stdout, reason = "the report is what this is for")]
fn take_turns(servers: &[&Server], processes: &[Process], load: Load) -> Result<Vec<Option<Tally>>, String> {
    let mut clients = Vec::new();
    for (server, process) in servers.iter().zip(processes) {
        if server.supports(load.kind) {
            clients.push((Client::open(load.kind, process.address, load.connections)?, process.id()));
        }
    }
    let mut tallies = rounds::take_turns(&mut clients)?.into_iter();
    let supporting = servers.iter().filter(|server| server.supports(load.kind));
    for (server, (client, _)) in supporting.zip(&clients) {
        if client.unlike() > 0 {
            let (unlike, name) = (client.unlike(), server.name);
            println!("{name}: {unlike} answers differ in more than the id; the driver read them in full");
        }
    }
    Ok(servers.iter().map(|server| server.supports(load.kind).then(|| tallies.next()).flatten()).collect())
}

/// Has the servers take turns in beginning sessions; the median turn speaks for each.
fn costs_of_sessions(servers: &[&Server]) -> Result<Vec<Option<sessions::Cost>>, String> {
    let mut costs: Vec<Vec<sessions::Cost>> = servers.iter().map(|_| Vec::new()).collect();
    for _ in 0..sessions::TURNS {
        for (server, costs) in servers.iter().zip(&mut costs) {
            if server.supports(Kind::Session) {
                costs.push(sessions::Cost::of(server).map_err(|error| format!("{}: {error}", server.name))?);
            }
        }
    }
    let median = |mut costs: Vec<sessions::Cost>| {
        costs.sort_unstable_by_key(|cost| cost.time);
        costs.get(costs.len() / 2).copied()
    };
    Ok(costs.into_iter().map(median).collect())
}

/// Has streams with small events sent to a client that has not turned delays off; returns the times of each server.
fn delays(servers: &[&Server]) -> Result<Delays, String> {
    let time = |server: &Server, kind: Kind| {
        let process = Process::start(server, kind.mode())?;
        let mut trips = Vec::new();
        Client::open_with(kind, process.address, 1, Delay::Default)?.run(DELAYED, &mut trips)?;
        process.stop()?;
        Ok::<_, String>(trips)
    };
    let of_kind = |kind: Kind| {
        let times = servers.iter().map(|server| server.supports(kind).then(|| time(server, kind)).transpose());
        Ok((kind, times.collect::<Result<_, String>>()?))
    };
    [Kind::Progress, Kind::SessionProgress].into_iter().map(of_kind).collect()
}

/// Of each server, the nanoseconds that each change took and the memory per stream.
type Changes = (Vec<Option<Vec<f64>>>, Vec<Option<f64>>);

/// Has the servers take turns in telling all streams of a change.
fn changes(servers: &[&Server], audience: Audience) -> Result<Changes, String> {
    let mut listened = Vec::new();
    for server in servers {
        // A process of its own, so that its memory has not grown yet.
        let open = || {
            let process = Process::start(server, audience.listen().mode())?;
            let listeners = Listeners::open(&process, audience).map_err(|error| format!("{}: {error}", server.name))?;
            Ok::<_, String>((process, listeners))
        };
        listened.push(server.supports(audience.listen()).then(open).transpose()?);
    }
    let mut times: Vec<Option<Vec<f64>>> = listened.iter().map(|open| open.as_ref().map(|_| Vec::new())).collect();
    for turn in 0..CHANGES {
        for offset in 0..servers.len() {
            let index = (turn + offset) % servers.len();
            if let (Some((_, listeners)), Some(times)) = (&mut listened[index], &mut times[index]) {
                times.push(listeners.change()?.as_nanos() as f64);
            }
        }
    }
    let memory = listened.iter().map(|open| open.as_ref().and_then(|(_, listeners)| listeners.memory)).collect();
    Ok((times, memory))
}

fn counted(servers: &[&Server], aims: &mut Aims) -> Result<String, String> {
    if !processors::is_installed("valgrind") {
        return Ok("Instructions and allocations are not counted: valgrind is not installed\n".to_owned());
    }
    let start = now();
    let mut rows = Vec::new();
    for (kind, tools) in [
        (Kind::Modern, TOOLS),
        (Kind::Modern, MANY_TOOLS),
        (Kind::Token, TOOLS),
        (Kind::Progress, TOOLS),
        (Kind::Legacy, TOOLS),
        (Kind::Session, TOOLS),
    ] {
        for server in servers {
            rows.push(Count::of(server, kind, tools)?);
        }
    }
    Ok(report::counts(&rows, start.elapsed(), aims).to_string())
}
