//! Compares what users of a real server get: fifty clients, and tools that use Redis and another service over HTTP.

mod clients;
mod requests;

use std::process::ExitCode;
use std::time::Duration;

use peers::aims::Aims;
use peers::process::{Process, pinned};
use peers::processors::{self, DRIVER, SERVER};
use peers::records::{self, Unit};
use peers::redis::Redis;
use peers::statistics::{median, percentile};
use peers::table::{Table, known, micros};
use peers::{usage, versions};

use crate::clients::Clients;

/// The contestants, and their packages.
const SERVERS: [(&str, &str); 2] = [("ours", "service-ours"), ("rmcp", "service-rmcp")];

/// How often each has its turn, and how many calls that is.
const TURNS: usize = 15;
const CALLS: usize = 3000;

/// How many clients there are.
const CLIENTS: usize = 50;

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
    if !processors::is_installed("redis-server") {
        println!("left out: redis-server is not installed");
        return Ok(());
    }
    println!("{}; {CLIENTS} clients, {TURNS} turns of {CALLS} calls each", versions::named("rmcp"));
    let is_pinned = processors::pin_driver();
    let who = "servers on processor 0; the clients, Redis and the other service on 1";
    println!("{}\n", if is_pinned { who } else { "NOT PINNED" });
    let redis = Redis::start()?;
    let (prices, url) = Process::start("service-prices", &pinned(DRIVER, "service-prices")?)?;
    let mut contestants = Vec::new();
    for (name, package) in SERVERS {
        let mut command = pinned(SERVER, package)?;
        command.extend([redis.url(), url.trim().to_owned()]);
        contestants.push(Contestant::start(name, &command)?);
    }
    for turn in 0..TURNS {
        for offset in 0..contestants.len() {
            let index = (turn + offset) % contestants.len();
            contestants[index].turn()?;
        }
    }
    let mut aims = Aims::default();
    println!("{}", report(&contestants, &mut aims));
    println!("{}", aims.table());
    for contestant in contestants {
        contestant.process.stop()?;
    }
    prices.stop()
}

/// A server that runs, its clients, and what came of that.
struct Contestant {
    name: &'static str,
    process: Process,
    clients: Clients,
    /// The seconds of each turn.
    turns: Vec<f64>,
    /// The nanoseconds of each call.
    trips: Vec<u64>,
    /// The processor's time that all turns took, where the system tells.
    busy: Option<Duration>,
    /// The memory before the first call, in KiB.
    idle: Option<u64>,
}

impl Contestant {
    fn start(name: &'static str, command: &[String]) -> Result<Self, String> {
        let (process, url) = Process::start(name, command)?;
        let idle = usage::memory(process.id());
        let mut clients = Clients::open(url.trim(), CLIENTS)?;
        clients.run(CALLS, &mut Vec::new()).map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { name, process, clients, turns: Vec::new(), trips: Vec::new(), busy: Some(Duration::ZERO), idle })
    }

    fn turn(&mut self) -> Result<(), String> {
        let before = usage::processor_time(self.process.id());
        let seconds = self.clients.run(CALLS, &mut self.trips).map_err(|error| format!("{}: {error}", self.name))?;
        let after = usage::processor_time(self.process.id());
        self.turns.push(seconds);
        let taken = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        self.busy = self.busy.zip(taken).map(|(busy, taken)| busy + taken);
        Ok(())
    }

    fn per_second(&self) -> f64 {
        CALLS as f64 / median(&self.turns)
    }

    /// The nanoseconds of the processor's time per call.
    fn busy(&self) -> f64 {
        self.busy.map_or(f64::NAN, |busy| busy.as_nanos() as f64 / self.trips.len() as f64)
    }
}

fn report(contestants: &[Contestant], aims: &mut Aims) -> Table {
    let title = format!("{CLIENTS} clients: tools that read and write Redis, and call another service");
    let headings = ["", "requests/s", "p50, µs", "p99, µs", "busy, µs", "idle, MiB", "MiB", "peak, MiB"];
    let mut table = Table::new(title.clone(), &headings);
    for contestant in contestants {
        let Contestant { name, process, trips, idle, .. } = contestant;
        let mib = |kib: Option<u64>| known(kib.map(|kib| format!("{:.1}", kib as f64 / 1024.0)));
        let (memory, peak) = (usage::memory(process.id()), usage::peak_memory(process.id()));
        table.add(vec![
            (*name).to_owned(),
            format!("{:.0}", contestant.per_second()),
            micros(percentile(trips, 50)),
            micros(percentile(trips, 99)),
            micros(contestant.busy()),
            mib(*idle),
            mib(memory),
            mib(peak),
        ]);
        let p99 = percentile(trips, 99) / 1e3;
        records::figure(&format!("service, {title}"), Unit::PerSecond, name, Some(contestant.per_second()));
        records::figure("service, p99", Unit::Microseconds, name, Some(p99));
        records::figure("service, memory", Unit::KiB, name, memory.map(|kib| kib as f64));
    }
    if let [ours, rmcp] = contestants {
        let turns: Vec<f64> = ours.turns.iter().zip(&rmcp.turns).map(|(ours, rmcp)| rmcp / ours).collect();
        aims.at_least("service: requests/s, / rmcp", 1.0, Some(median(&turns)));
        let p99 = percentile(&ours.trips, 99) / percentile(&rmcp.trips, 99);
        aims.at_most("service: p99, / rmcp", 1.0, Some(p99));
        let [ours, rmcp] = [ours, rmcp].map(|contestant| usage::memory(contestant.process.id()));
        let memory = ours.zip(rmcp).map(|(ours, rmcp)| ours as f64 / rmcp as f64);
        aims.at_most("service: memory, / rmcp", 1.0, memory);
    }
    table
}
