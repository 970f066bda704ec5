//! Many streams that stay open.

use mcp_kernel::Change;
use mcp_transport_http::ResponseBody;

use crate::dimension::Dimension;
use crate::service::{Service, call, listen};
use crate::tools;

const SIZES: [usize; 4] = [10, 100, 1000, 10_000];

pub(crate) fn dimensions() -> Vec<Dimension> {
    let calls = Dimension::new(
        "a call that changes nothing, with many listen streams",
        "streams",
        "a call does not look at streams",
    );
    let calls = SIZES.into_iter().fold(calls, |dimension, size| {
        dimension.at(size, 1, 500, move || {
            let service = Service::new(tools::server(10));
            let streams = subscriptions(&service, size);
            let request = call("echo", r#"{"text":"hello"}"#);
            move || {
                // They stay open as long as the operation is there.
                let _ = &streams;
                drop(service.body(request.clone()));
            }
        })
    });
    vec![
        calls,
        change("one change to all listen streams, per stream", subscriptions),
        change("one change to the GET streams of all sessions, per stream", |service, size| {
            (0..size).map(|_| service.stream(&service.session())).collect()
        }),
    ]
}

/// A change that all streams are told of, and read.
fn change(title: &str, open: fn(&Service, usize) -> Vec<ResponseBody>) -> Dimension {
    let reason = "each stream is written to once; what is above 1 in time is due to caches";
    SIZES.into_iter().fold(Dimension::new(title, "streams", reason), |dimension, size| {
        dimension.at(size, size, (5000 / size as u32).max(2), move || {
            let server = tools::server(10);
            let service = Service::new(server.clone());
            let mut streams = open(&service, size);
            move || {
                server.publish(&Change::Tools);
                for stream in &mut streams {
                    assert!(service.frame(stream).is_some(), "a stream was not told");
                }
            }
        })
    })
}

fn subscriptions(service: &Service, size: usize) -> Vec<ResponseBody> {
    (0..size).map(|id| service.opened(listen(id))).collect()
}
