//! Tasks that go on at another instance.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// Each frame is rendered once, though an instance is stopped, and the user is asked once.
// covers: S4.21
#[tokio::test]
async fn no_frame_is_rendered_twice() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_render_farm"));
    let output = command.kill_on_drop(true).output();
    let output = timeout(Duration::from_secs(60), output).await.expect("an end in time").expect("an output");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let rendered: Vec<(&str, &str)> =
        text.lines().filter_map(|line| line.strip_prefix("  instance ")?.split_once(" renders ")).collect();
    let frames = ["0 in day", "1 in day", "2 in day", "3 in moon", "4 in moon", "5 in moon"];
    assert_eq!(
        rendered.iter().map(|(_, frame)| *frame).collect::<Vec<_>>(),
        frames.map(|f| format!("frame {f}light")),
        "{text}"
    );
    assert_eq!(rendered.iter().map(|(instance, _)| instance).collect::<BTreeSet<_>>().len(), 2, "{text}");
    assert_eq!(text.matches("the user is asked").count(), 1, "{text}");
    assert!(text.contains("the harbour: 0 by "), "{text}");
}
