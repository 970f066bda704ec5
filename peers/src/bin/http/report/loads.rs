//! Requests per second.

use peers::aims::Aims;
use peers::records::{self, Unit};
use peers::statistics::{median, percentile};
use peers::table::{Table, micros};

use super::{ratio, unsupported};
use crate::process::Mode;
use crate::request::Kind;
use crate::rounds::Tally;
use crate::servers::{OURS, RMCP, STRICT, Server};

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
        "/ strict",
        "/ rmcp",
        "fastest",
        "/ strict",
        "p50, µs",
        "p99, µs",
        "busy, µs",
        "busy / strict",
        "driver idle",
    ];
    let mut table = Table::new(name.clone(), &headings);
    for (server, tally) in servers.iter().zip(tallies) {
        let Some(tally) = tally else {
            table.add(unsupported(server.name, headings.len()));
            continue;
        };
        records::figure(&name, Unit::PerSecond, server.name, Some(1e9 / tally.median()));
        let busy = of(STRICT).map(|strict| tally.busy() / strict.busy()).filter(|ratio| ratio.is_finite());
        table.add(vec![
            server.name.to_owned(),
            format!("{:.0}", 1e9 / tally.median()),
            ratio(of(STRICT).map(|strict| speed(tally, strict))),
            ratio(of(RMCP).map(|rmcp| speed(tally, rmcp))),
            format!("{:.0}", 1e9 / tally.fastest()),
            ratio(of(STRICT).map(|strict| strict.fastest() / tally.fastest())),
            micros(tally.percentile(50)),
            micros(tally.percentile(99)),
            micros(tally.busy()),
            ratio(busy),
            format!("{:.0} %", tally.idle() * 100.0),
        ]);
    }
    let against = |other| of(OURS).zip(of(other)).map(|(ours, other)| speed(ours, other));
    let has_sessions = kind.mode() == Mode::Sessions;
    let least = match connections {
        _ if kind.notifications() > 0 => None,
        1 => (!has_sessions).then_some(0.95),
        _ => Some(0.85),
    };
    if let Some(least) = least {
        aims.at_least(format!("{name}: requests/s, / strict"), least, against(STRICT));
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
