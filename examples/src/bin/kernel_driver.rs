//! A driver of `mcp-kernel` without any runtime: a server with one tool on standard streams, with two threads.
#![expect(clippy::disallowed_methods, reason = "a driver reads the clock, and this one has threads")]

use std::error::Error;
use std::io::{BufRead, Read, Write};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use mcp_kernel::Time;
use mcp_kernel::server::{Connection, Event, ServerConfig};
use mcp_types::{
    CallToolResult, ErrorObject, Implementation, ListToolsResult, Method, ServerCapabilities, Tool, ToolsCapability,
};

/// The maximum length of a line. Longer ones end the connection.
const MAX_LINE: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let capabilities = ServerCapabilities::default().tools(ToolsCapability::default());
    let config = ServerConfig::new(Implementation::new("driver", "1.0"), capabilities);
    let mut connection = Connection::long_lived(Arc::new(config));
    let (start, mut stdout) = (Instant::now(), std::io::stdout().lock());
    let now = || Time::from_instant(Instant::now(), start);

    // One line at a time: the thread waits until the connection wants the next one.
    let (sender, lines) = mpsc::sync_channel::<Vec<u8>>(0);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut read = || {
            let mut line = Vec::new();
            stdin.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).ok().filter(|_| line.pop() == Some(b'\n'))?;
            sender.send(line).ok()
        };
        while read().is_some() {}
    });

    while !connection.is_closed() {
        // Step 1: an input, or the next deadline.
        let deadline = connection.poll_timeout().map(|deadline| deadline.at.duration_since(now()));
        let received = match deadline {
            Some(left) => lines.recv_timeout(left),
            None => lines.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(line) => drop(connection.handle_bytes(now(), &line, None)),
            Err(mpsc::RecvTimeoutError::Timeout) => connection.handle_timeout(now()),
            // The client is gone, but reads what is left: responses are sent before the connection closes.
            Err(mpsc::RecvTimeoutError::Disconnected) => connection.close(),
        }
        empty(&mut connection, &mut stdout)?;
    }
    Ok(())
}

/// Steps 2 and 3, until both are done: an event may cause a response, and a response may let a queued request start.
fn empty(connection: &mut Connection, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    loop {
        while let Some(transmit) = connection.poll_transmit() {
            out.write_all(&transmit.message)?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
        let Some(event) = connection.poll_event() else { return Ok(()) };
        let Event::Request { scope, responder, .. } = event else { continue };
        // A driver without handlers that wait responds at once. Others keep the responder.
        if *scope.method() == Method::TOOLS_LIST {
            connection.respond(responder, Ok(ListToolsResult::new(vec![Tool::new("hello")])));
        } else if *scope.method() == Method::TOOLS_CALL {
            connection.respond(responder, Ok(CallToolResult::text("Hello!")));
        } else {
            connection.respond::<CallToolResult>(responder, Err(ErrorObject::method_not_found("unknown method")));
        }
    }
}
