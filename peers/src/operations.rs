//! Operations that can be timed, and run by name under a tool that counts instructions.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};

use crate::measure::{self, Cost};
use crate::processors::is_installed;

/// Something that can be done any number of times.
#[non_exhaustive]
pub struct Operation {
    /// What it is called.
    pub name: String,
    /// How often to run it for the instructions to be seen; never, if that would take too long.
    pub times: u32,
    /// Prepares it, off the clock.
    prepare: Box<dyn Fn() -> Box<dyn FnMut()>>,
}

impl Operation {
    /// Names an operation, and says how to prepare it.
    pub fn new<F: FnMut() + 'static>(name: impl Into<String>, times: u32, prepare: impl Fn() -> F + 'static) -> Self {
        Self { name: name.into(), times, prepare: Box::new(move || Box::new(prepare())) }
    }
}

/// Measures operations in turns.
#[must_use]
pub fn measure(operations: &[Operation]) -> Vec<Cost> {
    let mut prepared: Vec<_> = operations.iter().map(|operation| (operation.prepare)()).collect();
    measure::each(&mut prepared)
}

/// Counts the instructions of an operation, in a process of its own under callgrind; nothing if it is to be run never, or
/// callgrind is not installed.
///
/// Only what follows on the preparation is counted, and slowed down. The process is this program, which has to call
/// [`run_prepared`] if it is told so.
///
/// # Errors
///
/// Returns what went wrong with callgrind.
pub fn instructions(operation: &Operation) -> Result<Option<f64>, String> {
    if operation.times == 0 || !is_installed("callgrind_control") {
        return Ok(None);
    }
    let failed = |error: std::io::Error| format!("callgrind and {}: {error}", operation.name);
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--instr-atstart=no"]);
    command.arg(std::env::current_exe().map_err(failed)?).args(["--prepared", &operation.name]);
    command.arg(operation.times.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let counted = count(&mut child);
    let _ = child.kill();
    let _ = child.wait();
    let counted = counted.map_err(failed)?;
    let (_, count) =
        counted.split_once("Collected :").ok_or_else(|| format!("callgrind counted nothing:\n{counted}"))?;
    let count = count.split_whitespace().next().and_then(|count| count.parse::<f64>().ok());
    Ok(count.map(|count| count / f64::from(operation.times)))
}

/// Does what [`instructions`] asks of the process that it starts, with the arguments `--prepared NAME TIMES`: prepares, and
/// waits for a line before it runs the operation so many times.
#[expect(clippy::print_stdout, reason = "the other process waits for it")]
pub fn run_prepared(operation: &Operation, times: u32) -> ! {
    let mut run = (operation.prepare)();
    // What happens only the first time does not count.
    run();
    println!("prepared");
    let _ = std::io::stdin().read_line(&mut String::new());
    for _ in 0..times {
        run();
    }
    // Dropping what was prepared does not count either.
    std::process::exit(0)
}

/// Waits for the preparation, has callgrind count, and returns its summary.
fn count(child: &mut Child) -> std::io::Result<String> {
    let mut summary = String::new();
    if let (Some(output), Some(mut input)) = (child.stdout.take(), child.stdin.take()) {
        BufReader::new(output).read_line(&mut String::new())?;
        let mut control = Command::new("callgrind_control");
        control.args(["--instr=on", &child.id().to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        control.status()?;
        input.write_all(b"\n")?;
    }
    if let Some(mut errors) = child.stderr.take() {
        errors.read_to_string(&mut summary)?;
    }
    Ok(summary)
}

/// What a bench does by its arguments: reports, lists its operations, or runs one of them.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "what it prints is what it is for")]
pub fn main(bench: &str, operations: &[Operation], report: impl FnOnce()) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => report(),
        ["--operations"] => {
            for operation in operations.iter().filter(|operation| operation.times > 0) {
                println!("{}\t{}", operation.name, operation.times);
            }
        }
        ["--callgrind", name, times] => {
            let operation = operations.iter().find(|operation| operation.name == *name);
            let (Some(operation), Ok(times)) = (operation, times.parse::<u32>()) else {
                eprintln!("{}", usage(bench));
                return ExitCode::FAILURE;
            };
            let mut run = (operation.prepare)();
            for _ in 0..times {
                run();
            }
        }
        _ => {
            eprintln!("{}", usage(bench));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn usage(bench: &str) -> String {
    let indent = " ".repeat("usage: ".len());
    format!(
        "usage: {bench}                          print all tables
{indent}{bench} --operations             list what can be run by name, and how often is enough to see its cost
{indent}{bench} --callgrind NAME TIMES   run one operation so many times, and nothing else"
    )
}
