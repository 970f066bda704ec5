//! The tables.

use peers::aims::Aims;
use peers::footprint::Footprint;
use peers::process::path;
use peers::records::{self, Unit};
use peers::table::{Table, known, micros};

use crate::clients::{Client, Maker, OURS, RMCP, Way};
use crate::rounds::Tally;

/// Shows what calls took on one way, with so many of them at a time.
pub(crate) fn calls(way: Way, depth: u64, clients: &[&Client], tallies: &[Tally], aims: &mut Aims) -> Table {
    let name = match depth {
        1 => format!("{way}, one call at a time"),
        depth => format!("{way}, {depth} calls under way"),
    };
    let headings = [
        "",
        "calls/s",
        "/ rmcp",
        "fastest",
        "/ rmcp",
        "busy, µs",
        "/ rmcp",
        "allocations",
        "/ rmcp",
        "bytes",
        "/ rmcp",
    ];
    let mut table = Table::new(name.clone(), &headings);
    let base = clients.iter().position(|client| client.maker == Maker::Rmcp).and_then(|index| tallies.get(index));
    for (client, tally) in clients.iter().zip(tallies) {
        let against = |value: fn(&Tally, &Tally) -> f64| base.map(|base| value(tally, base));
        let (speed, allocations) = (against(Tally::speed), against(|one, other| one.allocations / other.allocations));
        table.add(vec![
            client.name.to_owned(),
            format!("{:.0}", 1e9 / tally.median()),
            ratio(speed),
            format!("{:.0}", 1e9 / tally.fastest()),
            ratio(against(|one, other| other.fastest() / one.fastest())),
            micros(tally.busy()),
            ratio(against(|one, other| one.busy() / other.busy())),
            format!("{:.1}", tally.allocations),
            ratio(allocations),
            format!("{:.0}", tally.bytes),
            ratio(against(|one, other| one.bytes / other.bytes)),
        ]);
        let workload = format!("client {name}");
        records::figure(&workload, Unit::PerSecond, client.name, Some(1e9 / tally.median()));
        records::figure(&workload, Unit::Allocations, client.name, Some(tally.allocations));
        if client.maker == Maker::Ours {
            let most = match way {
                Way::Memory => None,
                Way::Stdio => Some(12.0),
                Way::Http => Some(50.0),
            };
            if let Some(most) = most {
                aims.at_most(format!("{name}, {}: allocations", client.name), most, Some(tally.allocations));
            }
            aims.at_least(format!("{name}, {}: calls/s, / rmcp", client.name), 1.0, speed);
            aims.at_most(format!("{name}, {}: allocations, / rmcp", client.name), 1.0, allocations);
        }
    }
    table
}

/// Shows what is built, for both ways that leave the process.
pub(crate) fn footprints(aims: &mut Aims) -> Table {
    let headings = ["", "executable, KiB", "stripped, KiB", "crates", "crates linked"];
    let mut table = Table::new("What is built: a client over standard streams and HTTP, without TLS", &headings);
    let kib = |size: Option<u64>| known(size.map(|size| size / 1024));
    let [ours, rmcp] = [OURS, RMCP].map(|package| {
        let footprint = path(package).map(|path| Footprint::of(&path, package)).unwrap_or_default();
        table.add(vec![
            package.to_owned(),
            kib(footprint.size),
            kib(footprint.stripped),
            known(footprint.crates),
            known(footprint.linked),
        ]);
        footprint
    });
    let size = ours.stripped.zip(rmcp.stripped).map(|(ours, rmcp)| ours as f64 / rmcp as f64);
    aims.at_most("stripped executable, / rmcp", 1.0, size);
    let crates = ours.crates.zip(rmcp.crates).map(|(ours, rmcp)| ours as f64 / rmcp as f64);
    aims.at_most("crates, / rmcp", 1.0, crates);
    table
}

fn ratio(ratio: Option<f64>) -> String {
    known(ratio.filter(|ratio| ratio.is_finite()).map(|ratio| format!("{ratio:.2}")))
}
