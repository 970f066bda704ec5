//! The errors of the compiler that authors of servers meet say what to do.
//!
//! Each file in `tests/compile_errors` is a program with one mistake. The comments `// expect: ..` at its beginning are the
//! lines of the error that help its author, most of them from `#[diagnostic::on_unimplemented]`. All of them must be in what the
//! compiler prints, and each error that it prints must begin with one of them, so that there is none that does not help.
//! The rest of its output is not compared, because it changes with the version of the compiler. To read it, run
//! `cargo test -p mcp-tests --test compile_errors -- --nocapture`.
//!
//! A forgotten state and two structs of arguments are errors of `ServerBuilder::build` instead, whose texts
//! `mcp-server/tests/server/extractors.rs` tests.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// The crates that the programs use.
const CRATES: [&str; 3] = ["mcp_server", "schemars", "serde"];

#[test]
fn compile_errors_say_what_to_do() {
    let crates = check_crates();
    let mut cases: Vec<PathBuf> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("compile_errors"))
        .expect("the folder of programs")
        .map(|entry| entry.expect("a program").path())
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "there are no programs");
    let faults: Vec<String> = cases.iter().filter_map(|case| fault_of(case, &crates)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns what differs from the comments of a program, with what the compiler prints.
#[expect(clippy::print_stdout, reason = "the output of the compiler is shown on demand")]
fn fault_of(case: &Path, crates: &HashMap<String, PathBuf>) -> Option<String> {
    let source = fs::read_to_string(case).expect("a program");
    let expected: Vec<&str> = source.lines().filter_map(|line| line.strip_prefix("// expect: ")).collect();
    let printed = compile(case, crates);
    println!("{}\n\n{printed}", case.display());
    let missing = expected.iter().filter(|text| !printed.contains(**text)).map(|text| format!("missing: {text}"));
    let errors =
        printed.lines().filter(|line| line.starts_with("error") && !line.starts_with("error: aborting due to"));
    let unexpected = errors.filter(|error| !expected.iter().any(|text| error.contains(text)));
    let unexpected = unexpected.map(|error| format!("unexpected: {error}"));
    let nothing = expected.is_empty().then(|| "there is no `// expect: ..`".to_owned());
    let faults: Vec<String> = missing.chain(unexpected).chain(nothing).collect();
    (!faults.is_empty()).then(|| format!("{}\n{}\n\n{printed}", case.display(), faults.join("\n")))
}

/// Compiles a program without generating code, and returns what the compiler prints.
fn compile(case: &Path, crates: &HashMap<String, PathBuf>) -> String {
    let mut command = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command.args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--color=never", "--cap-lints=allow"]);
    command.args(["--out-dir", env!("CARGO_TARGET_TMPDIR")]);
    for name in CRATES {
        let file = &crates[name];
        let folder = file.parent().expect("a folder");
        command.arg("--extern").arg(format!("{name}={}", file.display()));
        command.arg("-L").arg(format!("dependency={}", folder.display()));
    }
    let output = command.arg(case).output().expect("rustc runs");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks `mcp-server` with its dependencies, in the target directory of the workspace, and returns where cargo put their
/// metadata.
fn check_crates() -> HashMap<String, PathBuf> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["check", "--package=mcp-server", "--all-features", "--locked", "--message-format=json"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let messages = messages.map(|line| serde_json::from_slice::<Value>(line).expect("a message of cargo"));
    let files = messages.filter(|message| message["reason"] == "compiler-artifact").filter_map(|message| {
        let files = message["filenames"].as_array()?.iter().filter_map(Value::as_str);
        let metadata =
            files.map(Path::new).find(|file| file.extension().is_some_and(|extension| extension == "rmeta"))?;
        Some((message["target"]["name"].as_str()?.replace('-', "_"), metadata.to_owned()))
    });
    files.collect()
}
