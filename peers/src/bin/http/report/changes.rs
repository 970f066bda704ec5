//! One change, told to many.

use peers::aims::Aims;
use peers::records::{self, Unit};
use peers::statistics::{fastest, median};
use peers::table::{Table, known};

use super::{ratio, unsupported};
use crate::listeners::{Audience, CHANGES, LISTENERS};
use crate::servers::{OURS, RMCP, STRICT, Server};

pub(crate) fn changes(
    audience: Audience,
    servers: &[&Server],
    times: &[Option<Vec<f64>>],
    memory: &[Option<f64>],
    aims: &mut Aims,
) -> Table {
    let of = |name: &str| servers.iter().position(|server| server.name == name).and_then(|index| times[index].as_ref());
    let (streams, most) = match audience {
        Audience::Subscriptions => ("listen streams", 1.15),
        Audience::Sessions => ("GET streams of sessions", 1.2),
    };
    let name = format!("one change to {LISTENERS} {streams}");
    let title = format!("{name}: milliseconds until the last one has it, of {CHANGES} changes; memory");
    let headings = ["", "median", "/ strict", "/ rmcp", "fastest", "/ strict", "KiB per stream"];
    let mut table = Table::new(title, &headings);
    let time = |times: &[f64], other: &[f64]| {
        median(&times.iter().zip(other).map(|(time, other)| time / other).collect::<Vec<f64>>())
    };
    for ((server, times), memory) in servers.iter().zip(times).zip(memory) {
        let Some(times) = times else {
            table.add(unsupported(server.name, headings.len()));
            continue;
        };
        records::figure(&name, Unit::Milliseconds, server.name, Some(median(times) / 1e6));
        table.add(vec![
            server.name.to_owned(),
            format!("{:.2}", median(times) / 1e6),
            ratio(of(STRICT).map(|strict| time(times, strict))),
            ratio(of(RMCP).map(|rmcp| time(times, rmcp))),
            format!("{:.2}", fastest(times) / 1e6),
            ratio(of(STRICT).map(|strict| fastest(times) / fastest(strict))),
            known(memory.map(|bytes| format!("{:.1}", bytes / 1024.0))),
        ]);
    }
    let value = of(OURS).zip(of(STRICT)).map(|(ours, strict)| time(ours, strict));
    aims.at_most(format!("{name}: time, / strict"), most, value);
    table
}
