//! The fixture of `mcp-tests`, as a server that listens.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{self, Running};

pub(crate) const PROGRAM: &str = "conformance-server";

const START_LIMIT: Duration = Duration::from_secs(60);

/// The fixture, while it listens.
pub(crate) struct Server {
    pub(crate) process: Running,
    pub(crate) url: String,
}

impl Server {
    /// Starts the fixture, and waits for the line with its address.
    pub(crate) fn start(program: &Path, results: &Path) -> Result<Self, String> {
        let (output, errors) = (results.join("server.out"), results.join("server.log"));
        let mut command = Command::new(program);
        command.args(["--http", "127.0.0.1:0"]).stdout(process::log(&output)?).stderr(process::log(&errors)?);
        let mut process = Running::start(&mut command, &program.display().to_string())?;
        let url = process::until(START_LIMIT, || match (address(&process::read(&output)?), process.ended()?) {
            (None, Some(status)) => {
                Err(format!("the server ended before it listened ({status}):\n{}", process::read(&errors)?))
            }
            (url, _) => Ok(url),
        })?;
        match url {
            Some(url) => Ok(Self { process, url }),
            None => {
                let limit = START_LIMIT.as_secs();
                Err(format!("the server printed no address within {limit} s:\n{}", process::read(&errors)?))
            }
        }
    }
}

/// Finds the first complete line that is an address.
fn address(printed: &str) -> Option<String> {
    let lines = printed.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    lines.map(str::trim).find(|line| line.starts_with("http://")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_a_complete_line() {
        assert_eq!(address("starting\nhttp://127.0.0.1:4000/mcp\n").as_deref(), Some("http://127.0.0.1:4000/mcp"));
        assert_eq!(address("http://127.0.0.1:40"), None);
    }
}
