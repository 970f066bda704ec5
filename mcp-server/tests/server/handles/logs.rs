//! What operators see of handles.

use mcp_server::Handles;
use serde_json::json;

use super::shop::{REFUSED, UnixClock, all_baskets, client, opened, refused, shop};
use crate::servers::MODERN;
use crate::watching::watch;

/// The log has the reason of a refusal, which the client does not get, and never a handle.
#[test]
fn refusals_are_logged_without_the_handle() {
    let clock = UnixClock::default();
    let all = all_baskets().into_iter().chain([Handles::sealed()]);
    for (baskets, reason) in all.zip(["unknown", "the state was used before", "the state has expired"]) {
        let server = shop(&clock, baskets);
        let mut handles = Vec::new();
        let seen = watch(|| {
            let mut ann = client(&server, MODERN, Some("ann"));
            let basket = opened(&mut ann);
            if reason.contains("expired") {
                clock.advance(3600);
            } else {
                ann.call_tool_text("empty", json!({ "basket": basket }));
            }
            assert_eq!(refused(&mut ann, "show", json!({ "basket": basket })), REFUSED);
            handles.push(basket);
        });
        let events: Vec<_> = seen.events.into_iter().map(|(_, fields)| fields).collect();
        let rejected: Vec<_> = events.iter().filter(|fields| fields.contains_key("reason")).collect();
        assert_eq!((&*rejected[0]["reason"], &*rejected[0]["kind"], rejected.len()), (reason, "basket", 1));
        for field in events.iter().chain(&seen.spans).flat_map(|fields| fields.values()) {
            let secret = handles[0].trim_start_matches("basket_");
            assert!(!field.contains(secret), "{field}");
        }
    }
}
