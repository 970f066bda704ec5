//! The benches, which live in a workspace of their own.

mod instructions;
mod page;
mod program;
mod records;

use self::program::{Program, build, build_others, servers};
use crate::Outcome;

const HOW_TO_READ: &str = "Compare ratios of one run only; peers/README.md says how to read them.";

/// Runs a bench, and returns what is to be said at the end.
type Bench = fn(&Options) -> Outcome;

/// The benches in the order in which all of them run, and in which the report has them.
const BENCHES: [(&str, Bench); 9] = [
    ("http", http),
    ("stdio", stdio),
    ("client", client),
    ("service", service),
    ("growth", growth),
    ("kernel", kernel),
    ("mrtr", mrtr),
    ("tasks", tasks),
    ("types", types),
];

const USAGE: &str = "usage: cargo xtask bench types|kernel|mrtr|tasks|stdio|http|client|growth|service|all|report [--peers all] [--report]";

/// Runs nothing, and makes a page of what was recorded.
const REPORT: &str = "report";

/// What was asked for besides the bench.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Whether peers take part that are not built by default.
    has_other_peers: bool,
    /// Whether the figures become a page.
    is_reporting: bool,
}

/// Runs one bench, or all.
pub(crate) fn run(arguments: &[&str]) -> Outcome {
    let Some((bench, options)) = arguments.split_first() else { return Err(USAGE.to_owned()) };
    let mut options = Options::read(options)?;
    options.is_reporting |= *bench == REPORT;
    let benches: Vec<_> = BENCHES.iter().filter(|(name, _)| *bench == "all" || name == bench).collect();
    if benches.is_empty() && *bench != REPORT {
        return Err(USAGE.to_owned());
    }
    let mut said = Vec::new();
    for (name, run) in benches {
        records::forget(name)?;
        said.push(run(&options)?);
    }
    said.retain(|said| !said.is_empty());
    if options.is_reporting {
        let path = page::write(&BENCHES.map(|(name, _)| name))?;
        said.push(format!("{} has the figures of all benches that were run", path.display()));
    }
    said.push(HOW_TO_READ.to_owned());
    Ok(said.join("\n"))
}

impl Options {
    fn read(mut arguments: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        loop {
            arguments = match arguments {
                [] => return Ok(options),
                ["--report", rest @ ..] => {
                    options.is_reporting = true;
                    rest
                }
                ["--peers", "all", rest @ ..] => {
                    options.has_other_peers = true;
                    rest
                }
                _ => return Err(USAGE.to_owned()),
            };
        }
    }
}

/// Compares `mcp-types` with its peers.
fn types(_: &Options) -> Outcome {
    Program::new("types").run(&[])
}

/// Shows what `mcp-kernel` costs.
fn kernel(_: &Options) -> Outcome {
    let program = Program::new("kernel");
    program.run(&[])?;
    Ok(format!("Instructions, counted by callgrind\n\n{}", instructions::table(&program)?))
}

/// Shows what rounds cost: calls that ask, and calls that could and do not.
fn mrtr(_: &Options) -> Outcome {
    let mut tables = String::new();
    for (features, which) in [("mrtr", "with the feature `mrtr`"), ("server", "without the feature `mrtr`")] {
        let program = Program::with_features("mrtr", features);
        program.run(&[])?;
        let table = instructions::table(&program)?;
        tables.push_str(&format!("Instructions {which}, counted by callgrind\n\n{table}\n"));
    }
    Ok(tables)
}

/// Shows what tasks cost.
fn tasks(_: &Options) -> Outcome {
    Program::with_features("tasks", "tasks").run(&[])
}

/// Compares servers over standard streams.
fn stdio(_: &Options) -> Outcome {
    build(&servers("stdio")?)?;
    Program::new("stdio").run(&[])
}

/// Compares servers over HTTP.
fn http(options: &Options) -> Outcome {
    build(&servers("http")?)?;
    if options.has_other_peers {
        build_others()?;
        return Program::new("http").run(&["--others"]);
    }
    Program::new("http").run(&[])
}

/// Compares clients.
fn client(_: &Options) -> Outcome {
    build(&["stdio-ours", "http-ours", "client-ours", "client-rmcp", "client-memory"].map(str::to_owned))?;
    Program::new("client").run(&[])
}

/// Shows how the cost of a request grows.
fn growth(_: &Options) -> Outcome {
    Program::with_features("growth", "growth").run(&[])
}

/// Compares servers whose tools use Redis and another service.
fn service(_: &Options) -> Outcome {
    build(&servers("service")?)?;
    Program::new("service").run(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_in_any_order() {
        let both = Options { has_other_peers: true, is_reporting: true };
        assert_eq!(Options::read(&["--report", "--peers", "all"]), Ok(both));
        assert_eq!(Options::read(&[]), Ok(Options::default()));
        assert!(Options::read(&["--peers", "some"]).is_err());
    }
}
