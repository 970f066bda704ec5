//! Any bytes of a server into a client, over a pair of streams.

use mcp_transport_stdio::{Line, LineReader, StreamTransport};
use tokio::io::{AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::time::{Duration, sleep};

use super::client::{Heard, Script, response_to, use_everything};

/// Whatever a server says, and however it ends, a client speaks the protocol, ends each of its calls, and leaves nothing
/// behind.
///
/// The first line may begin with `@`, followed by letters: `l` or `m` for a client of the legacy or the modern era alone,
/// `n` for one that cannot be asked anything, `k` for one that takes short lines only, `s` for streams that take few
/// bytes at a time.
///
/// Each other line is something that the server says. One that begins with the letter of a method (see `METHODS`) is the
/// response to the next request for it, from behind the id on. `.` ends what the server says. Any other line is sent as
/// it is, with the id of the newest request in place of `"id":?`: one after each line of the client, and the rest when
/// the client is silent.
///
/// # Panics
///
/// Panics if one of these promises does not hold.
pub fn client_stdio(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n').peekable();
    let start = lines.next_if(|line| line.first() == Some(&b'@')).unwrap_or_default();
    let script = Script::new(lines);
    let room = if start.contains(&b's') { 7 } else { 4096 };
    use_everything(start, || {
        let (near, far) = duplex(room);
        tokio::spawn(serve(far, script));
        let (reader, writer) = split(near);
        let transport = StreamTransport::new(reader, writer);
        if start.contains(&b'k') { transport.line_limit(300) } else { transport }
    });
}

/// How long the client is silent before the server goes on by itself.
const SILENCE: Duration = Duration::from_secs(2);

/// Plays the server.
async fn serve(stream: DuplexStream, mut script: Script) {
    let (reader, mut writer) = split(stream);
    let mut reader: LineReader<ReadHalf<DuplexStream>> = LineReader::new(reader, 1 << 20);
    let mut heard = Heard::default();
    let mut is_done = false;
    loop {
        let mut said = Vec::new();
        tokio::select! {
            biased;
            line = reader.next() => {
                let Ok(Some(Line::Message(line))) = line else { return };
                for (id, method) in heard.hear("", line) {
                    if let Some(answer) = script.answer(&method) {
                        said.push(response_to(&id, &answer));
                    }
                }
            }
            () = sleep(SILENCE), if !is_done => {}
        }
        match script.line(heard.newest.as_ref()) {
            Some(line) if line == b"." => return,
            Some(line) => said.push(line),
            None => is_done = said.is_empty(),
        }
        for line in said {
            if !say(&mut writer, &line).await {
                return;
            }
        }
    }
}

/// Sends a line, unless nobody reads it.
async fn say(writer: &mut WriteHalf<DuplexStream>, line: &[u8]) -> bool {
    writer.write_all(line).await.is_ok() && writer.write_all(b"\n").await.is_ok() && writer.flush().await.is_ok()
}
