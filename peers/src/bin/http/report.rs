//! The tables.

use std::time::Duration;

use peers::aims::Aims;
use peers::footprint::Footprint;
use peers::statistics::{fastest, median, percentile};
use peers::table::{Table, known, micros};

use crate::listeners::{CHANGES, LISTENERS};
use crate::process::{Mode, TOOLS};
use crate::request::Kind;
use crate::rounds::Tally;
use crate::servers::{OURS, RAW, RMCP, Server};
use crate::sessions::{CONNECTIONS, SESSIONS, STREAMS};
use crate::{sessions, sweep};

/// What is asked, and on how many connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) kind: Kind,
    pub(crate) connections: usize,
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
    let has_sessions = kind.mode() == Mode::Sessions;
    if kind.notifications() == 0 {
        let least = match connections {
            _ if has_sessions => 0.8,
            1 => 0.95,
            _ => 0.88,
        };
        aims.at_least(format!("{name}: requests/s, / raw"), least, against(RAW));
    }
    // With one connection, most of the time is that in which the system wakes one process, then the other.
    if has_sessions {
        aims.at_least(format!("{name}: requests/s, / rmcp"), 1.0, against(RMCP));
    } else if connections > 1 {
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

pub(crate) fn sessions(servers: &[&Server], costs: &[Option<sessions::Cost>], aims: &mut Aims) -> Table {
    let of = |name: &str| servers.iter().position(|server| server.name == name).and_then(|index| costs[index].as_ref());
    let title = format!(
        "Sessions: {SESSIONS} begin on {CONNECTIONS} connections; what they take while idle, and {STREAMS} with a \
         stream each"
    );
    let headings = [
        "",
        "ms",
        "/ raw",
        "/ rmcp",
        "busy, ms",
        "bytes each",
        "tasks each",
        "bytes with stream",
        "/ rmcp",
        "tasks with stream",
    ];
    let mut table = Table::new(title, &headings);
    let time = |cost: &sessions::Cost, other: &sessions::Cost| cost.time.as_secs_f64() / other.time.as_secs_f64();
    let streaming = |cost: &sessions::Cost, other: &sessions::Cost| Some(cost.streaming? / other.streaming?);
    for (server, cost) in servers.iter().zip(costs) {
        let Some(cost) = cost else {
            table.add(unsupported(server.name, headings.len()));
            continue;
        };
        let whole = |value: Option<f64>| known(value.map(|value| format!("{value:.0}")));
        table.add(vec![
            server.name.to_owned(),
            format!("{:.0}", cost.time.as_secs_f64() * 1e3),
            ratio(of(RAW).map(|raw| time(cost, raw))),
            ratio(of(RMCP).map(|rmcp| time(cost, rmcp))),
            whole(cost.busy.map(|busy| busy.as_secs_f64() * 1e3)),
            whole(cost.memory),
            format!("{:.2}", cost.tasks),
            whole(cost.streaming),
            ratio(of(RMCP).and_then(|rmcp| streaming(cost, rmcp))),
            format!("{:.2}", cost.streaming_tasks),
        ]);
    }
    let (ours, both) = (of(OURS), of(OURS).zip(of(RMCP)));
    aims.at_most(format!("{SESSIONS} sessions begin: time, / rmcp"), 1.0, both.map(|(ours, rmcp)| time(ours, rmcp)));
    aims.at_most("idle session: bytes", 2048.0, ours.and_then(|ours| ours.memory));
    // A few tasks are there for the server as a whole.
    aims.at_most("idle session: tasks", 0.01, ours.map(|ours| ours.tasks));
    let value = both.and_then(|(ours, rmcp)| streaming(ours, rmcp));
    aims.at_most("session with a stream: bytes, / rmcp", 1.0, value);
    table
}

/// The nanoseconds of each stream, for each kind of stream and each server.
pub(crate) type Delays = Vec<(Kind, Vec<Option<Vec<u64>>>)>;

pub(crate) fn delays(servers: &[&Server], delays: &Delays, aims: &mut Aims) -> Table {
    let title = "Streams to a client without TCP_NODELAY, one connection: milliseconds";
    let mut table = Table::new(title, &["", "p50", "p99", "longest"]);
    let millis = |times: &[u64], percent| percentile(times, percent) / 1e6;
    for (kind, times) in delays {
        for (server, times) in servers.iter().zip(times) {
            let Some(times) = times else { continue };
            let cells = [50, 99, 100].map(|percent| format!("{:.2}", millis(times, percent)));
            table.add([format!("{kind}, {}", server.name)].into_iter().chain(cells).collect());
            if server.name == OURS {
                aims.at_most(format!("{kind}, without TCP_NODELAY: p99, ms"), 20.0, Some(millis(times, 99)));
            }
        }
    }
    table
}

pub(crate) fn sweeps([few, many]: [sweep::Cost; 2], aims: &mut Aims) -> Table {
    let headings: Vec<String> = sweep::LIVE.iter().map(|live| format!("{live} sessions")).collect();
    let mut table =
        Table::new("A sweep of ours: nanoseconds", &["", headings[0].as_str(), headings[1].as_str(), "ratio"]);
    let rows = [
        ("ends nothing".to_owned(), few.nothing, many.nothing),
        (format!("ends {}", sweep::ENDING), few.some, many.some),
    ];
    for (name, few, many) in rows {
        let number = |value: f64| format!("{value:.0}");
        table.add(vec![name.clone(), number(few), number(many), ratio(Some(many / few))]);
        aims.at_most(
            format!("a sweep that {name}, with ten times the sessions: time, / with as many"),
            2.0,
            Some(many / few),
        );
    }
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
            kib(footprint.stripped),
            known(footprint.crates),
            known(footprint.linked),
        ]);
    }
    table
}

fn unsupported(name: &str, columns: usize) -> Vec<String> {
    let mut row = vec![known::<f64>(None); columns];
    name.clone_into(&mut row[0]);
    row
}

fn ratio(ratio: Option<f64>) -> String {
    known(ratio.map(|ratio| format!("{ratio:.2}")))
}
