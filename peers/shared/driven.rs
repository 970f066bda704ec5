//! What all servers over HTTP let the driver do.

use std::io::Write as _;

/// Returns how many tools to have: what follows on `--tools`.
#[allow(dead_code, reason = "not all servers have that choice")]
pub(crate) fn number_of_tools() -> usize {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--tools").skip(1);
    arguments.next().and_then(|number| number.parse().ok()).unwrap_or(50)
}

/// Whether legacy clients have sessions: `--sessions`.
#[allow(dead_code, reason = "not all servers have sessions")]
pub(crate) fn has_sessions() -> bool {
    std::env::args().any(|argument| argument == "--sessions")
}

/// Ends the process when its input ends, so that no server outlives its driver; says at the end how many tasks there were.
#[expect(clippy::disallowed_methods, reason = "reading from the input blocks")]
pub(crate) fn end_with_input(runtime: tokio::runtime::Handle) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        // The driver need not listen.
        let _ = writeln!(std::io::stdout(), "{}", runtime.metrics().num_alive_tasks());
        std::process::exit(0);
    });
}
