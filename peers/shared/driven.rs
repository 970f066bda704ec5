//! What all servers over HTTP let the driver do.

/// Returns how many tools to have: what follows on `--tools`.
pub(crate) fn number_of_tools() -> usize {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--tools").skip(1);
    arguments.next().and_then(|number| number.parse().ok()).unwrap_or(50)
}

/// Ends the process when its input ends, so that no server outlives its driver.
#[expect(clippy::disallowed_methods, reason = "reading from the input blocks")]
pub(crate) fn end_with_input() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(0);
    });
}
