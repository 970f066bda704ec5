//! Gates that handlers wait at, and notes about what they did.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

/// A gate that handlers wait at until a test opens it. It stays open afterwards. Clones share the gate.
///
/// ```
/// use mcp_testkit::{Gate, Task};
///
/// let gate = Gate::default();
/// let mut handler = Task::start(gate.wait());
/// gate.open();
/// handler.finish();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Mutex<GateState>>);

#[derive(Debug, Default)]
struct GateState {
    is_open: bool,
    waiting: Vec<Waker>,
}

impl Gate {
    /// Opens the gate and wakes the handlers that wait at it.
    pub fn open(&self) {
        let mut state = self.0.lock().expect("no panic at the gate");
        state.is_open = true;
        state.waiting.drain(..).for_each(Waker::wake);
    }

    /// Completes when the gate is open.
    pub fn wait(&self) -> impl Future<Output = ()> + Send + use<> {
        let gate = self.clone();
        poll_fn(move |cx| {
            let mut state = gate.0.lock().expect("no panic at the gate");
            if state.is_open {
                return Poll::Ready(());
            }
            state.waiting.push(cx.waker().clone());
            Poll::Pending
        })
    }
}

/// Notes that handlers add and a test takes, in order. Clones share the notes.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    /// Adds a note.
    pub fn add(&self, note: impl Into<String>) {
        self.0.lock().expect("no panic while notes are added").push(note.into());
    }

    /// Removes all notes and returns them.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic while notes are added"))
    }

    /// Returns a value that adds a note when it is dropped, such as at the end of a cancelled handler.
    pub fn on_drop(&self, note: impl Into<String>) -> NoteOnDrop {
        NoteOnDrop { notes: self.clone(), note: note.into() }
    }
}

/// Adds a note when it is dropped; see [`Notes::on_drop`].
#[derive(Debug)]
#[must_use = "the note is added when this is dropped"]
pub struct NoteOnDrop {
    notes: Notes,
    note: String,
}

impl Drop for NoteOnDrop {
    fn drop(&mut self) {
        self.notes.add(std::mem::take(&mut self.note));
    }
}
