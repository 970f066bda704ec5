//! A Redis server of our own.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::processors::{self, DRIVER};

/// A Redis server that runs, and is killed when this is dropped.
#[derive(Debug)]
pub struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    /// Starts a server that stores nothing, and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// Returns that it cannot be started.
    #[expect(clippy::disallowed_methods, reason = "a bench waits for another process")]
    pub fn start() -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot start redis-server: {error}");
        let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).map_err(failed)?.port();
        let mut line: Vec<String> = processors::pinned(DRIVER).map(str::to_owned).collect();
        line.extend(["redis-server", "--port", &port.to_string(), "--bind", "127.0.0.1"].map(str::to_owned));
        line.extend(["--save", "", "--appendonly", "no"].map(str::to_owned));
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        let redis = Self { child: command.spawn().map_err(failed)?, port };
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(redis);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err("redis-server accepts no connections".to_owned())
    }

    /// Returns the id of its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns where it is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Fails if it has ended, which is just as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
