//! The signals that stop a server.

use std::io;
use std::task::{Context, Poll};

#[cfg(any(unix, windows))]
use super::wake_gate::WakeGate;

/// Returns a function that is ready each time the process receives a signal to stop.
#[cfg(unix)]
pub(super) fn stop_signals() -> io::Result<impl FnMut(&mut Context<'_>) -> Poll<()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut signals = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    let mut gate = WakeGate::new(move |cx: &mut Context<'_>| {
        let has_fired = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if has_fired { Poll::Ready(()) } else { Poll::Pending }
    });
    Ok(move |cx: &mut Context<'_>| gate.poll(cx))
}

#[cfg(windows)]
pub(super) fn stop_signals() -> io::Result<impl FnMut(&mut Context<'_>) -> Poll<()>> {
    let mut signal = tokio::signal::windows::ctrl_c()?;
    let mut gate = WakeGate::new(move |cx: &mut Context<'_>| signal.poll_recv(cx).map(drop));
    Ok(move |cx: &mut Context<'_>| gate.poll(cx))
}

/// Without signals, the server stops when its input ends.
#[cfg(not(any(unix, windows)))]
pub(super) fn stop_signals() -> io::Result<impl FnMut(&mut Context<'_>) -> Poll<()>> {
    Ok(|_: &mut Context<'_>| Poll::Pending)
}
