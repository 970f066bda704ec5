//! Long messages.

use crate::dimension::Dimension;
use crate::service::{Service, call};
use crate::tools;

/// In KiB.
const SIZES: [usize; 4] = [1, 64, 1024, 4096];

pub(crate) fn dimensions() -> Vec<Dimension> {
    let reason = "each byte is read, checked and copied a fixed number of times";
    let arguments = Dimension::new("a call with long arguments, per KiB", "KiB", reason);
    let arguments = SIZES.into_iter().fold(arguments, |dimension, size| {
        dimension.at(size, size, times(size), move || {
            let service = Service::new(tools::server(10));
            let text = serde_json::to_string(&tools::long_text(size * 1024)).expect("text");
            let request = call("length", &format!(r#"{{"text":{text}}}"#));
            move || drop(service.body(request.clone()))
        })
    });
    let results = Dimension::new("a call with a long result, per KiB", "KiB", reason);
    let results = SIZES.into_iter().fold(results, |dimension, size| {
        dimension.at(size, size, times(size), move || {
            let service = Service::new(tools::server(10));
            let request = call("repeat", &format!(r#"{{"bytes":{}}}"#, size * 1024));
            move || {
                let body = service.body(request.clone());
                assert!(
                    body.len() > size * 1024,
                    "too short: {}",
                    String::from_utf8_lossy(&body[..body.len().min(200)])
                );
            }
        })
    });
    vec![arguments, results]
}

/// Instructions are counted slowly, so what takes long is done less often.
fn times(size: usize) -> u32 {
    (2000 / size as u32).max(2)
}
