//! The least that a server over standard streams can cost: a loop over lines, types that borrow from the line, no trees.
//!
//! Each response is serialized once, into the buffer that is written. It serves all that the driver asks for and checks
//! nothing, so all that a library adds is in the distance to it.

#[path = "../../../shared/strict/mod.rs"]
mod strict;

use std::io::{self, BufRead as _, BufReader, BufWriter, Write};

use serde::Serialize;

use crate::strict::message::Message;
use crate::strict::reply::{Discovery, Handshake, Reply, ToolList};
use crate::strict::tools::Tools;

fn main() -> io::Result<()> {
    let tools = Tools::new(50)?;
    let mut input = BufReader::with_capacity(BUFFER, io::stdin().lock());
    let mut output = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        respond(&tools, &serde_json::from_slice(&line)?, &mut output)?;
        line.clear();
        // While another request is there already, the responses can wait for its response.
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
    Ok(())
}

/// Writes the response, unless the message is a notification or nothing that the driver sends.
fn respond(tools: &Tools, message: &Message<'_>, output: &mut impl Write) -> io::Result<()> {
    let Message { id: Some(id), method, params } = message else { return Ok(()) };
    match *method {
        "tools/call" => write(output, tools.call(params).map(|result| Reply::new(id, result))),
        "initialize" => write(output, params.version.map(|version| Reply::new(id, Handshake::new(version)))),
        "server/discover" => {
            let version = params.meta.as_ref().and_then(|meta| meta.version);
            write(output, version.map(|version| Reply::new(id, Discovery::new(version))))
        }
        "tools/list" => write(output, Some(Reply::new(id, ToolList { tools: tools.list() }))),
        _ => Ok(()),
    }
}

fn write(output: &mut impl Write, reply: Option<impl Serialize>) -> io::Result<()> {
    let Some(reply) = reply else { return Ok(()) };
    serde_json::to_writer(&mut *output, &reply)?;
    output.write_all(b"\n")
}

const BUFFER: usize = 64 * 1024;
