//! Answers the calls of the driver, and only those, by cutting their text out.
//!
//! What a round trip to this server takes is what the pipes, the scheduler and the driver take. No
//! server can be faster, and one that comes close to it is no longer what is measured.

use std::io::{self, BufRead as _, BufReader, BufWriter, Write};

fn main() -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER, io::stdin().lock());
    let mut output = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        answer(&line, &mut output)?;
        line.clear();
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
    Ok(())
}

/// Answers a request that looks just as the driver writes it; anything else is a notification.
fn answer(line: &[u8], output: &mut impl Write) -> io::Result<()> {
    let Some((id, rest)) = line.strip_prefix(BEFORE_ID).and_then(|rest| split_at_byte(rest, b',')) else {
        return Ok(());
    };
    output.write_all(BEFORE_ID)?;
    output.write_all(id)?;
    output.write_all(br#","result":{"#)?;
    if let Some((text, _)) = rest.strip_prefix(BEFORE_TEXT).and_then(|rest| split_at_byte(rest, b'"')) {
        output.write_all(br#""content":[{"type":"text","text":""#)?;
        output.write_all(text)?;
        output.write_all(br#""}],"isError":false"#)?;
    } else if rest.starts_with(br#""method":"initialize""#) {
        output.write_all(br#""protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#)?;
        output.write_all(br#""serverInfo":{"name":"floor","version":"1.0"}"#)?;
    } else {
        let tool = |index| format!(r#"{{"name":"tool_{index:02}","inputSchema":{{"type":"object"}}}}"#);
        let tools: Vec<String> = (1..50).map(tool).collect();
        write!(output, r#""tools":[{{"name":"echo","inputSchema":{{"type":"object"}}}},{}]"#, tools.join(","))?;
    }
    output.write_all(b"}}\n")
}

fn split_at_byte(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let index = bytes.iter().position(|candidate| *candidate == byte)?;
    Some((&bytes[..index], &bytes[index + 1..]))
}

const BUFFER: usize = 64 * 1024;

const BEFORE_ID: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

const BEFORE_TEXT: &[u8] = br#""method":"tools/call","params":{"name":"echo","arguments":{"text":""#;
