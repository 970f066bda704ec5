//! A Wine of our own, which ends with us.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::process;

const COMPILER: &str = "x86_64-w64-mingw32-gcc";

/// How to let Rust's standard library have `ProcessPrng`, which Wine lacks up to version 9.
const RANDOM: &str = include_str!("bcryptprimitives.c");

const START_LIMIT: Duration = Duration::from_secs(300);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// A Windows installation in a folder of its own.
pub(crate) struct Wine {
    prefix: PathBuf,
}

impl Wine {
    /// Installs it, unless it is there already.
    pub(crate) fn prepare(prefix: &Path) -> Result<Self, String> {
        for (tool, package) in
            [("wine", "wine wine64"), ("wineserver", "wine"), (COMPILER, "gcc-mingw-w64-x86-64-win32")]
        {
            let quiet = &mut Command::new(tool);
            quiet.arg("--version").env("WINEDEBUG", "-all").stdout(Stdio::null()).stderr(Stdio::null());
            process::run(quiet, tool, START_LIMIT)
                .map_err(|error| format!("{error} (Debian: apt-get install {package})"))?;
        }
        std::fs::create_dir_all(prefix).map_err(|error| format!("cannot write {}: {error}", prefix.display()))?;
        let wine = Self { prefix: prefix.to_owned() };
        process::run(wine.command("wine").args(["wineboot", "--init"]), "wineboot", START_LIMIT)?;
        wine.add_random()?;
        Ok(wine)
    }

    /// Builds the library that has `ProcessPrng`, unless Wine has one.
    fn add_random(&self) -> Result<(), String> {
        let system = self.prefix.join("drive_c/windows/system32");
        let (source, library) = (self.prefix.join("bcryptprimitives.c"), system.join("bcryptprimitives.dll"));
        if library.exists() {
            return Ok(());
        }
        std::fs::write(&source, RANDOM).map_err(|error| format!("cannot write {}: {error}", source.display()))?;
        let mut compile = Command::new(COMPILER);
        compile.args(["-shared", "-O1", "-s", "-o"]).args([&library, &source]).arg("-ladvapi32");
        process::run(&mut compile, COMPILER, START_LIMIT)
    }

    /// Has cargo run programs for Windows here.
    pub(crate) fn runs<'a>(&self, cargo: &'a mut Command) -> &'a mut Command {
        self.adjust(cargo).env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.adjust(&mut command);
        command
    }

    fn adjust<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("WINEPREFIX", &self.prefix).env("WINEDEBUG", "-all").env_remove("DISPLAY");
        // Neither .NET nor a browser is needed, and installing them would ask the user.
        command.env("WINEDLLOVERRIDES", "mscoree,mshtml=")
    }
}

/// Ends all processes of this installation, and of no other.
impl Drop for Wine {
    fn drop(&mut self) {
        for option in ["--kill", "--wait"] {
            let _ = process::run(self.command("wineserver").arg(option), "wineserver", STOP_LIMIT);
        }
    }
}
