//! Input that can only be waited for by a thread.

use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

/// Reads on a thread of its own.
///
/// A read that waits cannot be called off. The threads of a runtime are waited for when it ends, so a read on one of
/// them would keep the process alive until somebody types a line. Nobody waits for this one: it ends with the process.
pub(super) struct Threaded {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    taken: usize,
}

impl Threaded {
    /// Starts to read; no more than two pieces are read ahead.
    ///
    /// # Errors
    ///
    /// Fails if there is no thread to be had.
    pub(super) fn start(mut source: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, pieces) = mpsc::channel(1);
        let read = move || {
            loop {
                let mut piece = vec![0; PIECE];
                let outcome = match source.read(&mut piece) {
                    Ok(read) => {
                        piece.truncate(read);
                        Ok(piece)
                    }
                    Err(fault) if fault.kind() == io::ErrorKind::Interrupted => continue,
                    Err(fault) => Err(fault),
                };
                let is_last = outcome.as_ref().map_or(true, Vec::is_empty);
                if sender.blocking_send(outcome).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("stdin".to_owned()).spawn(read)?;
        Ok(Self { pieces, piece: Vec::new(), taken: 0 })
    }
}

impl AsyncRead for Threaded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.taken == self.piece.len() {
            // Without a thread there is nothing more to come.
            self.piece = ready!(self.pieces.poll_recv(cx)).unwrap_or_else(|| Ok(Vec::new()))?;
            self.taken = 0;
        }
        let rest = self.piece.get(self.taken..).unwrap_or_default();
        let taken = rest.len().min(buffer.remaining());
        buffer.put_slice(rest.get(..taken).unwrap_or_default());
        self.taken += taken;
        Poll::Ready(Ok(()))
    }
}

/// As much as a line reader has room for to begin with.
const PIECE: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn all_of_it_comes_in_order() {
        let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut reader = Threaded::start(io::Cursor::new(bytes.clone())).unwrap();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).await.unwrap();
        assert!(read == bytes);
        assert_eq!(reader.read(&mut [0]).await.unwrap(), 0, "the end stays the end");
    }

    #[tokio::test]
    async fn faults_are_passed_on() {
        struct Faulty(u32);

        impl Read for Faulty {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                Err(if self.0 < 3 { io::ErrorKind::Interrupted } else { io::ErrorKind::PermissionDenied }.into())
            }
        }

        let mut reader = Threaded::start(Faulty(0)).unwrap();
        assert_eq!(reader.read(&mut [0]).await.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
