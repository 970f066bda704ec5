//! Blocking input and output on threads of their own.
//!
//! A blocking read or write cannot be cancelled. A runtime joins its threads when it ends, so a call on one of them would
//! keep the process alive until there is input, or until output is read. The threads here are never joined: they end with
//! the process.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::thread;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

/// Reads on a thread of its own.
pub(super) struct ThreadedReader {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    taken: usize,
}

impl ThreadedReader {
    /// Spawns the thread, which reads at most two chunks ahead.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be spawned.
    pub(super) fn start(mut source: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(1);
        let read = move || {
            loop {
                let mut chunk = vec![0; CHUNK_SIZE];
                let outcome = match source.read(&mut chunk) {
                    Ok(read) => {
                        chunk.truncate(read);
                        Ok(chunk)
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
        Ok(Self { chunks, chunk: Vec::new(), taken: 0 })
    }
}

impl AsyncRead for ThreadedReader {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.taken == self.chunk.len() {
            // The thread has ended.
            self.chunk = ready!(self.chunks.poll_recv(cx)).unwrap_or_else(|| Ok(Vec::new()))?;
            self.taken = 0;
        }
        let rest = self.chunk.get(self.taken..).unwrap_or_default();
        let taken = rest.len().min(buffer.remaining());
        buffer.put_slice(rest.get(..taken).unwrap_or_default());
        self.taken += taken;
        Poll::Ready(Ok(()))
    }
}

/// Writes on a thread of its own.
///
/// `poll_flush` waits until everything was written. Dropping does not.
pub(super) struct ThreadedWriter(Arc<WriteQueue>);

/// The buffer between the writer and its thread.
#[derive(Default)]
struct WriteQueue {
    state: Mutex<State>,
    /// Signalled when there is something to write, or the writer was dropped.
    has_work: Condvar,
}

#[derive(Default)]
struct State {
    /// What the thread has not taken yet.
    chunk: Vec<u8>,
    /// Whether the thread is writing.
    is_writing: bool,
    /// Whether the thread has failed; the error is reported once.
    has_failed: bool,
    fault: Option<io::Error>,
    /// Whether the writer was dropped.
    is_closed: bool,
    waker: Option<Waker>,
}

impl ThreadedWriter {
    /// Spawns the thread; at most two chunks are buffered.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be spawned.
    pub(super) fn start(mut sink: impl Write + Send + 'static) -> io::Result<Self> {
        let queue = Arc::<WriteQueue>::default();
        let ours = Arc::clone(&queue);
        let write = move || {
            while let Some(chunk) = ours.take() {
                let outcome = sink.write_all(&chunk).and_then(|()| sink.flush());
                if !ours.complete(outcome) {
                    return;
                }
            }
        };
        thread::Builder::new().name("stdout".to_owned()).spawn(write)?;
        Ok(Self(queue))
    }
}

impl WriteQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to write; `None` if the writer was dropped.
    fn take(&self) -> Option<Vec<u8>> {
        let is_idle = |state: &mut State| state.chunk.is_empty() && !state.is_closed;
        let mut state = self.has_work.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        let chunk = std::mem::take(&mut state.chunk);
        state.is_writing = !chunk.is_empty();
        state.is_writing.then_some(chunk)
    }

    /// Records the outcome of writing a chunk; returns whether to continue.
    fn complete(&self, outcome: io::Result<()>) -> bool {
        let mut state = self.lock();
        state.is_writing = false;
        state.has_failed = outcome.is_err();
        state.fault = outcome.err();
        let (waker, has_failed) = (state.waker.take(), state.has_failed);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        !has_failed
    }
}

impl State {
    fn check(&mut self) -> io::Result<()> {
        if self.has_failed {
            return Err(self.fault.take().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()));
        }
        Ok(())
    }

    /// Registers the task, which the thread wakes after the next chunk.
    fn wait<T>(&mut self, cx: &Context<'_>) -> Poll<T> {
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for ThreadedWriter {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock();
        state.check()?;
        let room = CHUNK_SIZE.saturating_sub(state.chunk.len()).min(bytes.len());
        if room == 0 && !bytes.is_empty() {
            return state.wait(cx);
        }
        state.chunk.extend_from_slice(bytes.get(..room).unwrap_or_default());
        self.0.has_work.notify_one();
        Poll::Ready(Ok(room))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        state.check()?;
        if state.is_writing || !state.chunk.is_empty() { state.wait(cx) } else { Poll::Ready(Ok(())) }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl Drop for ThreadedWriter {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.has_work.notify_one();
    }
}

/// The initial capacity of a line reader.
const CHUNK_SIZE: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn all_of_it_is_read_in_order() {
        let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut reader = ThreadedReader::start(io::Cursor::new(bytes.clone())).unwrap();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).await.unwrap();
        assert!(read == bytes);
        assert_eq!(reader.read(&mut [0]).await.unwrap(), 0, "the end stays the end");
    }

    #[tokio::test]
    async fn faults_of_reading_are_passed_on() {
        struct Faulty(u32);

        impl Read for Faulty {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                Err(if self.0 < 3 { io::ErrorKind::Interrupted } else { io::ErrorKind::PermissionDenied }.into())
            }
        }

        let mut reader = ThreadedReader::start(Faulty(0)).unwrap();
        assert_eq!(reader.read(&mut [0]).await.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    /// Writes when it may: once for each permission, and without one when there are no more.
    struct Slow(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let written = bytes.len().min(1000);
            self.1.lock().unwrap().extend_from_slice(&bytes[..written]);
            Ok(written)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn all_of_it_is_written_in_order() {
        let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let (_, may) = channel();
        let mut writer = ThreadedWriter::start(Slow(may, Arc::clone(&written))).unwrap();
        writer.flush().await.unwrap();
        for (round, part) in bytes.chunks(77_777).enumerate() {
            writer.write_all(part).await.unwrap();
            writer.flush().await.unwrap();
            assert_eq!(written.lock().unwrap().len(), bytes.len().min((round + 1) * 77_777), "it has left");
        }
        writer.shutdown().await.unwrap();
        assert!(*written.lock().unwrap() == bytes);
    }

    /// What waits is bounded, and the writer can be let go of while it does.
    #[tokio::test]
    async fn nobody_reads() {
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let (go, may) = channel();
        let mut writer = ThreadedWriter::start(Slow(may, Arc::clone(&written))).unwrap();
        let (mut accepted, bytes) = (0, [0; 5000]);
        let limit = std::time::Duration::from_millis(100);
        while let Ok(taken) = tokio::time::timeout(limit, writer.write(&bytes)).await {
            accepted += taken.unwrap();
            assert!(accepted <= 2 * CHUNK_SIZE, "{accepted}");
        }
        assert!(tokio::time::timeout(limit, writer.flush()).await.is_err());
        assert!(written.lock().unwrap().is_empty());
        drop(writer);
        // Its thread ends when it can, with all that it was given.
        drop(go);
        while Arc::strong_count(&written) > 1 {
            tokio::time::sleep(limit / 100).await;
        }
        assert_eq!(written.lock().unwrap().len(), accepted);
    }

    #[tokio::test]
    async fn faults_of_writing_are_passed_on() {
        struct Faulty;

        impl Write for Faulty {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::PermissionDenied.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        let mut writer = ThreadedWriter::start(Faulty).unwrap();
        writer.write_all(b"x").await.unwrap();
        assert_eq!(writer.flush().await.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(writer.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe, "the end stays the end");
        assert_eq!(writer.flush().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
