//! The tables.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use peers::footprint::Footprint;
use peers::statistics::{fastest, median};
use peers::table::{Table, known, micros};

use crate::listeners::{CHANGES, LISTENERS};
use crate::process::TOOLS;
use crate::request::Kind;
use crate::rounds::Tally;
use crate::servers::{OURS, RAW, RMCP, Server};

/// What is asked, and on how many connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) kind: Kind,
    pub(crate) connections: usize,
}

/// What is promised of ours, and what came out.
#[derive(Debug, Default)]
pub(crate) struct Aims(Vec<Aim>);

#[derive(Debug)]
struct Aim {
    what: String,
    least: Option<f64>,
    most: Option<f64>,
    value: Option<f64>,
}

impl Aims {
    fn at_least(&mut self, what: impl Into<String>, limit: f64, value: Option<f64>) {
        self.0.push(Aim { what: what.into(), least: Some(limit), most: None, value });
    }

    fn at_most(&mut self, what: impl Into<String>, limit: f64, value: Option<f64>) {
        self.0.push(Aim { what: what.into(), least: None, most: Some(limit), value });
    }

    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new("What is promised of ours", &["", "aim", "in this run", ""]);
        for Aim { what, least, most, value } in &self.0 {
            let aim = match (least, most) {
                (Some(least), _) => format!("at least {least}"),
                (None, Some(most)) => format!("at most {most}"),
                (None, None) => known::<f64>(None),
            };
            let is_met =
                value.map(|value| least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most));
            let verdict = is_met.map(|is_met| if is_met { "met" } else { "MISSED" });
            table.add(vec![what.clone(), aim, known(value.map(|value| format!("{value:.2}"))), known(verdict)]);
        }
        table
    }
}

pub(crate) fn load(load: Load, servers: &[&Server], tallies: &[Option<Tally>], aims: &mut Aims) -> Table {
    let Load { kind, connections } = load;
    let of =
        |name: &str| servers.iter().position(|server| server.name == name).and_then(|index| tallies[index].as_ref());
    let name = format!("{kind}, {connections} connection{}", if connections == 1 { "" } else { "s" });
    let headings = [
        "",
        "requests/s",
        "/ raw",
        "/ rmcp",
        "fastest",
        "/ raw",
        "p50, µs",
        "p99, µs",
        "busy, µs",
        "busy / raw",
        "driver idle",
    ];
    let mut table = Table::new(name.clone(), &headings);
    for (server, tally) in servers.iter().zip(tallies) {
        let Some(tally) = tally else {
            table.add(unsupported(server.name, headings.len()));
            continue;
        };
        let busy = of(RAW).map(|raw| tally.busy() / raw.busy()).filter(|ratio| ratio.is_finite());
        table.add(vec![
            server.name.to_owned(),
            format!("{:.0}", 1e9 / tally.median()),
            ratio(of(RAW).map(|raw| speed(tally, raw))),
            ratio(of(RMCP).map(|rmcp| speed(tally, rmcp))),
            format!("{:.0}", 1e9 / tally.fastest()),
            ratio(of(RAW).map(|raw| raw.fastest() / tally.fastest())),
            micros(tally.percentile(50)),
            micros(tally.percentile(99)),
            micros(tally.busy()),
            ratio(busy),
            format!("{:.0} %", tally.idle() * 100.0),
        ]);
    }
    let against = |other| of(OURS).zip(of(other)).map(|(ours, other)| speed(ours, other));
    if kind != Kind::Progress {
        let least = if connections == 1 { 0.95 } else { 0.88 };
        aims.at_least(format!("{name}: requests/s, / raw"), least, against(RAW));
    }
    // With one connection, most of the time is that in which the system wakes one process, then the other.
    if connections > 1 {
        aims.at_least(format!("{name}: requests/s, / rmcp"), 2.5, against(RMCP));
    }
    table
}

/// How many times as fast one is as the other, in the median of the turns, in each of which both met the same conditions.
fn speed(tally: &Tally, other: &Tally) -> f64 {
    let turns: Vec<f64> = tally.rounds.iter().zip(&other.rounds).map(|(time, other)| other / time).collect();
    median(&turns)
}

pub(crate) fn changes(
    servers: &[&Server],
    times: &[Option<Vec<f64>>],
    memory: &[Option<f64>],
    aims: &mut Aims,
) -> Table {
    let of = |name: &str| servers.iter().position(|server| server.name == name).and_then(|index| times[index].as_ref());
    let title = format!(
        "One change told to {LISTENERS} listeners: milliseconds until the last one knows, of {CHANGES} changes; memory"
    );
    let headings = ["", "median", "/ raw", "/ rmcp", "fastest", "/ raw", "KiB per listener"];
    let mut table = Table::new(title, &headings);
    let time = |times: &[f64], other: &[f64]| {
        median(&times.iter().zip(other).map(|(time, other)| time / other).collect::<Vec<f64>>())
    };
    for ((server, times), memory) in servers.iter().zip(times).zip(memory) {
        let Some(times) = times else {
            table.add(unsupported(server.name, headings.len()));
            continue;
        };
        table.add(vec![
            server.name.to_owned(),
            format!("{:.2}", median(times) / 1e6),
            ratio(of(RAW).map(|raw| time(times, raw))),
            ratio(of(RMCP).map(|rmcp| time(times, rmcp))),
            format!("{:.2}", fastest(times) / 1e6),
            ratio(of(RAW).map(|raw| fastest(times) / fastest(raw))),
            known(memory.map(|bytes| format!("{:.1}", bytes / 1024.0))),
        ]);
    }
    let value = of(OURS).zip(of(RAW)).map(|(ours, raw)| time(ours, raw));
    aims.at_most(format!("one change to {LISTENERS} listeners: time, / raw"), 1.3, value);
    table
}

/// What was counted: the kind of call, the number of tools, the server, instructions and allocations.
type Count = (Kind, usize, &'static str, Option<f64>, Option<f64>);

pub(crate) fn counts(counts: &[Count], elapsed: Duration, aims: &mut Aims) -> Table {
    let title = format!("Counted by valgrind, per call, one connection ({:.0} s)", elapsed.as_secs_f64());
    let mut table = Table::new(title, &["", "instructions", "/ raw", "/ rmcp", "allocations"]);
    let of = |name: &str, kind: Kind, tools: usize| {
        counts.iter().find(|count| (count.0, count.1, count.2) == (kind, tools, name))
    };
    for (kind, tools, name, instructions, allocations) in counts {
        let against = |other| Some(instructions.as_ref()? / of(other, *kind, *tools)?.3?);
        table.add(vec![
            format!("{kind}, {tools} tools, {name}"),
            known(instructions.map(|count| format!("{count:.0}"))),
            ratio(against(RAW)),
            ratio(against(RMCP)),
            known(allocations.map(|count| format!("{count:.1}"))),
        ]);
    }
    let ours: Vec<&Count> = counts.iter().filter(|count| (count.0, count.2) == (Kind::Modern, OURS)).collect();
    let allocations = ours.iter().find(|count| count.1 == TOOLS).and_then(|count| count.4);
    aims.at_most(format!("{}: allocations", Kind::Modern), 30.0, allocations);
    let by_tools = match ours.as_slice() {
        [few, many] => many.3.zip(few.3).map(|(many, few)| many / few),
        _ => None,
    };
    aims.at_most("instructions with ten times the tools, / with as many", 1.01, by_tools);
    table
}

pub(crate) fn footprints(servers: &[&Server]) -> Table {
    let headings = ["", "executable, KiB", "stripped, KiB", "crates", "crates linked"];
    let mut table = Table::new("What is built", &headings);
    for server in servers {
        let Some(path) = server.path() else { continue };
        let footprint = Footprint::of(&path, server.package);
        let kib = |size: Option<u64>| known(size.map(|size| size / 1024));
        table.add(vec![
            server.name.to_owned(),
            kib(footprint.size),
            kib(stripped(&path)),
            known(footprint.crates),
            known(footprint.linked),
        ]);
    }
    table
}

/// Returns the size of an executable without its symbols, unless `strip` is not installed.
fn stripped(path: &Path) -> Option<u64> {
    let copy = path.with_extension("stripped");
    let status = Command::new("strip").arg("-o").arg(&copy).arg(path).status().ok()?;
    let size = copy.metadata().ok().map(|metadata| metadata.len());
    let _ = std::fs::remove_file(&copy);
    size.filter(|_| status.success())
}

fn unsupported(name: &str, columns: usize) -> Vec<String> {
    let mut row = vec![known::<f64>(None); columns];
    name.clone_into(&mut row[0]);
    row
}

fn ratio(ratio: Option<f64>) -> String {
    known(ratio.map(|ratio| format!("{ratio:.2}")))
}
