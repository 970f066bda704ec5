//! What sessions cost.

use peers::aims::Aims;
use peers::records::{self, Unit};
use peers::table::{Table, known};

use super::{ratio, unsupported};
use crate::servers::{OURS, RMCP, STRICT, Server};
use crate::sessions::{CONNECTIONS, SESSIONS, STREAMS};
use crate::{sessions, sweep};

pub(crate) fn sessions(servers: &[&Server], costs: &[Option<sessions::Cost>], aims: &mut Aims) -> Table {
    let of = |name: &str| servers.iter().position(|server| server.name == name).and_then(|index| costs[index].as_ref());
    let title = format!(
        "Sessions: {SESSIONS} begin on {CONNECTIONS} connections; what they take while idle, and {STREAMS} with a \
         stream each"
    );
    let headings = [
        "",
        "ms",
        "/ strict",
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
        let per_second = SESSIONS as f64 / cost.time.as_secs_f64();
        records::figure("sessions created", Unit::PerSecond, server.name, Some(per_second));
        let kib = |bytes: Option<f64>| bytes.map(|bytes| bytes / 1024.0);
        records::figure("memory of an idle session", Unit::KiB, server.name, kib(cost.memory));
        records::figure("memory of a session with a stream", Unit::KiB, server.name, kib(cost.streaming));
        let whole = |value: Option<f64>| known(value.map(|value| format!("{value:.0}")));
        table.add(vec![
            server.name.to_owned(),
            format!("{:.0}", cost.time.as_secs_f64() * 1e3),
            ratio(of(STRICT).map(|strict| time(cost, strict))),
            ratio(of(RMCP).map(|rmcp| time(cost, rmcp))),
            whole(cost.busy.map(|busy| busy.as_secs_f64() * 1e3)),
            whole(cost.memory),
            format!("{:.2}", cost.tasks),
            whole(cost.streaming),
            ratio(of(RMCP).and_then(|rmcp| streaming(cost, rmcp))),
            format!("{:.2}", cost.streaming_tasks),
        ]);
    }
    let ours = of(OURS);
    let against = |other| of(OURS).zip(of(other)).map(|(ours, other)| time(other, ours));
    aims.at_least("sessions created per second, / strict", 0.7, against(STRICT));
    aims.at_least("sessions created per second, / rmcp", 1.0, against(RMCP));
    aims.at_most("idle session: bytes", 1536.0, ours.and_then(|ours| ours.memory));
    // A few tasks are there for the server as a whole.
    aims.at_most("idle session: tasks", 0.01, ours.map(|ours| ours.tasks));
    aims.at_most("session with a stream: bytes", 16384.0, ours.and_then(|ours| ours.streaming));
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
