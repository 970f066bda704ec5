//! What valgrind counted, and what is built.

use std::time::Duration;

use peers::aims::Aims;
use peers::footprint::Footprint;
use peers::records::{self, Unit};
use peers::table::{Table, known};

use super::ratio;
use crate::counts::Count;
use crate::process::TOOLS;
use crate::request::Kind;
use crate::servers::{MEASURED, OURS, PROTECTED, RMCP, STRICT, Server};

pub(crate) fn counts(counts: &[Count], elapsed: Duration, aims: &mut Aims) -> Table {
    let title = format!("Counted by valgrind, per call, one connection ({:.0} s)", elapsed.as_secs_f64());
    let headings = ["", "instructions", "/ strict", "/ rmcp", "of these copying", "malloc and free", "allocations"];
    let mut table = Table::new(title, &headings);
    let of = |server: &str, kind: Kind, tools: usize| {
        counts.iter().find(|count| (count.server, count.kind, count.tools) == (server, kind, tools))
    };
    for count in counts {
        let Count { server, kind, tools, .. } = *count;
        let against = |other| Some(count.instructions? / of(other, kind, tools)?.instructions?);
        let name = format!("{kind}, {tools} tools");
        records::figure(&name, Unit::Instructions, server, count.instructions);
        records::figure(&name, Unit::Allocations, server, count.allocations);
        let whole = |value: Option<f64>| known(value.map(|value| format!("{value:.0}")));
        table.add(vec![
            format!("{name}, {server}"),
            whole(count.instructions),
            ratio(against(STRICT)),
            ratio(against(RMCP)),
            whole(count.copying),
            whole(count.allocating),
            known(count.allocations.map(|count| format!("{count:.1}"))),
        ]);
    }
    for kind in [Kind::Modern, Kind::Legacy] {
        let ours = of(OURS, kind, TOOLS);
        aims.at_most(format!("{kind}: instructions"), 30_000.0, ours.and_then(|count| count.instructions));
        aims.at_most(format!("{kind}: allocations"), 20.0, ours.and_then(|count| count.allocations));
    }
    let ours = of(OURS, Kind::Modern, TOOLS);
    aims.at_most(format!("{}: instructions that copy", Kind::Modern), 800.0, ours.and_then(|count| count.copying));
    let allocating = ours.and_then(|count| count.allocating);
    aims.at_most(format!("{}: instructions of malloc and free", Kind::Modern), 4000.0, allocating);
    // Both get the same request; only one of them looks at the token, which it has verified before.
    let tokens = of(PROTECTED, Kind::Token, TOOLS).zip(of(OURS, Kind::Token, TOOLS));
    aims.at_most("a remembered access token: instructions", 1500.0, added(tokens, |count| count.instructions));
    aims.at_most("a remembered access token: allocations", 2.0, added(tokens, |count| count.allocations));
    let metrics = of(MEASURED, Kind::Modern, TOOLS).zip(ours);
    aims.at_most("metrics of a request: instructions", 2000.0, added(metrics, |count| count.instructions));
    aims.at_most("metrics of a request: allocations", 0.0, added(metrics, |count| count.allocations));
    let many = counts.iter().find(|count| count.server == OURS && count.tools > TOOLS);
    let by_tools = many.and_then(|many| many.instructions).zip(ours.and_then(|few| few.instructions));
    let by_tools = by_tools.map(|(many, few)| many / few);
    aims.at_most("instructions with ten times the tools, / with as many", 1.01, by_tools);
    table
}

/// What a server takes more than another one.
fn added(servers: Option<(&Count, &Count)>, count: fn(&Count) -> Option<f64>) -> Option<f64> {
    servers.and_then(|(with, without)| Some(count(with)? - count(without)?))
}

pub(crate) fn footprints(servers: &[&Server], aims: &mut Aims) -> Table {
    let headings = ["", "executable, KiB", "stripped, KiB", "crates", "crates linked"];
    let mut table = Table::new("What is built", &headings);
    for server in servers {
        let Some(path) = server.path() else { continue };
        let footprint = Footprint::of(&path, server.package);
        let crates = footprint.crates.map(|crates| crates as f64);
        records::figure("crates that a server over HTTP is built from", Unit::Crates, server.name, crates);
        if server.name == OURS {
            aims.at_most("a server over HTTP: crates", 60.0, crates);
        }
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
