//! Compares servers over standard streams: the time of a call, the start, what they bring along.

mod answer;
mod dialect;
mod process;
mod rounds;
mod servers;

use std::process::ExitCode;

use peers::aims::Aims;
use peers::footprint::Footprint;
use peers::records::{self, Unit};
use peers::statistics::{fastest, median};
use peers::table::{Table, known, micros};
use peers::{processors, usage, versions};

use crate::dialect::Dialect;
use crate::process::Process;
use crate::rounds::{DEPTH, ROUNDS, Tally};
use crate::servers::{OURS, RAW, SERVERS, STRICT, Server};

/// How often each server is started.
const STARTS: usize = 51;

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
    println!("{}, {}; {ROUNDS} rounds each, in turns\n", versions::named("rmcp"), versions::named("serde_json"));
    let (built, missing): (Vec<_>, Vec<_>) = SERVERS.iter().partition(|server| server.path().is_some());
    for server in &built {
        println!("{}: {}", server.name, server.about);
    }
    for server in missing {
        println!("{}: not built, and left out", server.name);
    }
    println!();
    let rows: Vec<Row> = [Dialect::Legacy, Dialect::Modern]
        .into_iter()
        .flat_map(|dialect| built.iter().map(move |server| Row { server, dialect }))
        .filter(|row| row.server.dialects.contains(&row.dialect))
        .collect();

    let starts = start_ups(&rows)?;
    let mut processes = rows.iter().map(Row::process).collect::<Result<Vec<_>, _>>()?;
    let mut aims = Aims::default();
    let ids: Vec<u32> = processes.iter().map(Process::id).collect();
    let (tallies, is_shared) =
        processors::sharing(ids, |is_shared| (rounds::ping_pong(&mut processes), is_shared));
    let tallies = tallies?;
    println!("{}", ping_pong(&rows, &tallies));
    println!("{}\n", if is_shared { "the driver and the servers on one processor" } else { "NOT PINNED" });
    speeds(&rows, &tallies, "one call at a time", 0.9, &mut aims);
    let tallies = rounds::pipelined(&mut processes)?;
    println!("{}", pipelined(&rows, &tallies));
    speeds(&rows, &tallies, &format!("{DEPTH} calls in flight"), 0.65, &mut aims);
    let memory: Vec<Option<u64>> = processes.iter().map(|process| usage::peak_memory(process.id())).collect();
    println!("{}", start_up(&rows, &starts, &memory, &mut aims));
    println!("{}", footprints(&built, &mut aims));
    println!("{}", aims.table());
    for (row, process) in rows.iter().zip(processes) {
        if process.unlike > 0 {
            println!(
                "{}: {} answers differ in more than the id; the driver read them in full",
                row.name(),
                process.unlike
            );
        }
        process.stop()?;
    }
    Ok(())
}

/// A server, talked to in one way.
struct Row {
    server: &'static Server,
    dialect: Dialect,
}

impl Row {
    fn name(&self) -> String {
        format!("{} {}", self.dialect, self.server.name)
    }

    fn process(&self) -> Result<Process, String> {
        let (mut process, _) = Process::start(self.server, self.dialect)?;
        process.prepare()?;
        Ok(process)
    }
}

/// Puts a value of each row in relation to that of the base, of the same dialect.
fn ratios(rows: &[Row], values: &[f64]) -> Vec<String> {
    let base = |dialect| {
        let index = rows.iter().position(|row| row.dialect == dialect && row.server.name == STRICT)?;
        values.get(index)
    };
    let ratio =
        |(row, value): (&Row, &f64)| base(row.dialect).map(|base| value / base).filter(|ratio| ratio.is_finite());
    rows.iter().zip(values).map(ratio).map(|ratio| known(ratio.map(|ratio| format!("{ratio:.2}")))).collect()
}

/// Records the calls per second of all rows, and puts those of ours in the modern era in relation to both loops that are
/// written by hand.
fn speeds(rows: &[Row], tallies: &[Tally], what: &str, least: f64, aims: &mut Aims) {
    for (row, tally) in rows.iter().zip(tallies) {
        let workload = format!("stdio {}, {what}", row.dialect);
        records::figure(&workload, Unit::PerSecond, row.server.name, Some(1e9 / tally.median()));
    }
    let of = |name: &str| {
        let index = rows.iter().position(|row| row.dialect == Dialect::Modern && row.server.name == name)?;
        tallies.get(index)
    };
    for base in [STRICT, RAW] {
        let speed = of(OURS).zip(of(base)).map(|(ours, base)| ours.speed(base));
        aims.at_least(format!("{}, {what}: calls/s, / {base}", Dialect::Modern), least, speed);
    }
}

/// Starts all servers a number of times, in turns; returns the nanoseconds that each start took.
fn start_ups(rows: &[Row]) -> Result<Vec<Vec<f64>>, String> {
    let mut times = vec![Vec::with_capacity(STARTS); rows.len()];
    for turn in 0..STARTS {
        for offset in 0..rows.len() {
            let index = (turn + offset) % rows.len();
            let (mut process, elapsed) = Process::start(rows[index].server, rows[index].dialect)?;
            times[index].push(elapsed.as_nanos() as f64);
            // Some complain of a conversation that ends before it has really begun.
            process.prepare()?;
            process.stop()?;
        }
    }
    Ok(times)
}

fn ping_pong(rows: &[Row], tallies: &[Tally]) -> Table {
    let title = "One call of echo at a time: microseconds per call";
    let mut table =
        Table::new(title, &["", "median", "/ strict", "fastest", "/ strict", "busy", "/ strict", "p50", "p99"]);
    for ((row, tally), mut cells) in rows.iter().zip(tallies).zip(times(rows, tallies)) {
        cells.insert(0, row.name());
        cells.extend([50, 99].map(|percent| micros(tally.percentile(percent))));
        table.add(cells);
    }
    table
}

fn pipelined(rows: &[Row], tallies: &[Tally]) -> Table {
    let title = format!("{DEPTH} calls of echo under way: microseconds per call");
    let mut table =
        Table::new(title, &["", "median", "/ strict", "fastest", "/ strict", "busy", "/ strict", "calls/s"]);
    for ((row, tally), mut cells) in rows.iter().zip(tallies).zip(times(rows, tallies)) {
        cells.insert(0, row.name());
        cells.push(format!("{:.0}", 1e9 / tally.median()));
        table.add(cells);
    }
    table
}

/// Returns, for each row, the three times that are told of any kind of rounds, each with its ratio.
fn times(rows: &[Row], tallies: &[Tally]) -> Vec<Vec<String>> {
    let mut cells = vec![Vec::new(); rows.len()];
    for time in [Tally::median, Tally::fastest, Tally::busy] {
        let values: Vec<f64> = tallies.iter().map(time).collect();
        for ((cells, value), ratio) in cells.iter_mut().zip(&values).zip(ratios(rows, &values)) {
            cells.extend([micros(*value), ratio]);
        }
    }
    cells
}

fn start_up(rows: &[Row], starts: &[Vec<f64>], memory: &[Option<u64>], aims: &mut Aims) -> Table {
    let title =
        format!("Start: milliseconds from nothing to the first answer, of {STARTS} starts; memory after all rounds");
    let mut table = Table::new(title, &["", "median", "/ strict", "fastest", "/ strict", "peak memory, KiB"]);
    let mut cells: Vec<Vec<String>> = rows.iter().map(|row| vec![row.name()]).collect();
    for time in [median, fastest] {
        let values: Vec<f64> = starts.iter().map(|starts| time(starts)).collect();
        for ((cells, value), ratio) in cells.iter_mut().zip(&values).zip(ratios(rows, &values)) {
            cells.extend([format!("{:.2}", value / 1e6), ratio]);
        }
    }
    for (row, starts) in rows.iter().zip(starts) {
        let milliseconds = median(starts) / 1e6;
        let workload = format!("stdio {}, start to the first response", row.dialect);
        records::figure(&workload, Unit::Milliseconds, row.server.name, Some(milliseconds));
        if row.server.name == OURS {
            aims.at_most(format!("{}: start to the first response, ms", row.dialect), 1.7, Some(milliseconds));
        }
    }
    for (mut cells, memory) in cells.into_iter().zip(memory) {
        cells.push(known(*memory));
        table.add(cells);
    }
    table
}

fn footprints(servers: &[&Server], aims: &mut Aims) -> Table {
    let mut table = Table::new("What is built", &["", "executable, KiB", "crates", "crates linked"]);
    for server in servers {
        let footprint = server.path().map(|path| Footprint::of(&path, server.package)).unwrap_or_default();
        let crates = footprint.crates.map(|crates| crates as f64);
        records::figure("crates that a server over standard streams is built from", Unit::Crates, server.name, crates);
        if server.name == OURS {
            aims.at_most("a server over standard streams: crates", 35.0, crates);
        }
        let size = footprint.size.map(|size| size / 1024);
        table.add(vec![server.name.to_owned(), known(size), known(footprint.crates), known(footprint.linked)]);
    }
    table
}
