//! Operations that can be timed, and run by name under a tool that counts instructions.

use peers::measure::{self, Cost};

/// Something that can be done any number of times.
pub(crate) struct Operation {
    pub(crate) name: String,
    /// How often to run it for the instructions to be seen; never, if that would take too long.
    pub(crate) times: u32,
    /// Prepares it, off the clock.
    pub(crate) prepare: Box<dyn Fn() -> Box<dyn FnMut()>>,
}

impl Operation {
    pub(crate) fn new<F: FnMut() + 'static>(
        name: impl Into<String>,
        times: u32,
        prepare: impl Fn() -> F + 'static,
    ) -> Self {
        Self { name: name.into(), times, prepare: Box::new(move || Box::new(prepare())) }
    }
}

/// Measures operations in turns.
pub(crate) fn measure(operations: &[Operation]) -> Vec<Cost> {
    let mut prepared: Vec<_> = operations.iter().map(|operation| (operation.prepare)()).collect();
    measure::each(&mut prepared)
}
