//! Compares SECURITY.md with the settings that there are.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mcp_client::{CallOptions, FollowLimits, Limits, ListLimits, RetryLimits};
use mcp_redis::RedisOptions;
use mcp_server::handles::MemoryHandleLimits;
use mcp_session::{MemoryEventLimits, SessionOptions};
use mcp_tasks::{TaskLimits, TaskSettings};
use mcp_transport_stdio::{RestartPolicy, ServeOptions, ShutdownTimeouts};
use mcp_types::jsonrpc;

/// Where a type with settings is, and which of its settings bound nothing that a peer controls.
struct Settings {
    name: &'static str,
    file: &'static str,
    others: &'static [&'static str],
    /// Whether all that are no such others have to be named.
    is_complete: bool,
}

const fn all(name: &'static str, file: &'static str, others: &'static [&'static str]) -> Settings {
    Settings { name, file, others, is_complete: true }
}

const fn some(name: &'static str, file: &'static str) -> Settings {
    Settings { name, file, others: &[], is_complete: false }
}

const SETTINGS: [Settings; 26] = [
    all("jsonrpc::Limits", "mcp-types/src/jsonrpc/limits.rs", &[]),
    all("Limits", "mcp-kernel/src/limits.rs", &["message"]),
    all("CallOptions", "mcp-kernel/src/calls.rs", &[]),
    all(
        "HttpOptions",
        "mcp-transport-http/src/server/options.rs",
        &[
            "allow_any_host",
            "allow_any_origin",
            "event_store",
            "keep_alive_interval",
            "resumable",
            "retry_after",
            "select_server",
            "session_migration",
            "session_options",
            "session_store",
            "sessions",
            "sse_retry",
        ],
    ),
    all(
        "HttpServer",
        "mcp-transport-http/src/server/socket/server.rs",
        &["drain_delay", "legacy_sse", "path", "status"],
    ),
    all("SessionOptions", "mcp-session/src/options.rs", &["sweep_interval", "wrong_owner"]),
    all("MemoryEventLimits", "mcp-session/src/memory/event_limits.rs", &[]),
    all("MemoryHandleLimits", "mcp-server/src/handles/memory.rs", &[]),
    all("TaskLimits", "mcp-tasks/src/limits.rs", &[]),
    all("TaskSettings", "mcp-tasks/src/runtime/settings.rs", &["lease", "poll_interval", "unix_clock"]),
    all(
        "RedisOptions",
        "mcp-redis/src/options.rs",
        &["client_certificate", "command_timeout", "prefix", "root_certificates"],
    ),
    all("ServeOptions", "mcp-transport-stdio/src/server/options.rs", &["network", "shared_pipe"]),
    all("ListLimits", "mcp-client/src/list/limits.rs", &[]),
    all("FollowLimits", "mcp-client/src/tasks/limits.rs", &[]),
    all("RetryLimits", "mcp-mrtr/src/retry.rs", &["initial_wait", "max_wait"]),
    all("RestartPolicy", "mcp-transport-stdio/src/client/restart.rs", &["initial_delay"]),
    some("ProtectedResource", "mcp-auth/src/server/protected_resource.rs"),
    some("JwtVerifier", "mcp-auth/src/server/jwt/verifier.rs"),
    some("ServerTls", "mcp-transport-http/src/server/socket/tls.rs"),
    some("ClientBuilder", "mcp-client/src/builder.rs"),
    some("ServerBuilder", "mcp-server/src/build/builder.rs"),
    some("Handles", "mcp-server/src/handles/kind.rs"),
    some("HttpTransport", "mcp-transport-http/src/client/transport.rs"),
    some("ChildTransport", "mcp-transport-stdio/src/client/child.rs"),
    some("StreamTransport", "mcp-transport-stdio/src/client/stream.rs"),
    some("ShutdownTimeouts", "mcp-transport-stdio/src/child/process.rs"),
];

/// Every setting that the page names exists, and every setting that bounds a peer is named.
#[test]
fn security_md_names_the_settings_there_are() {
    let page = read("SECURITY.md");
    let named: BTreeSet<&str> = page.split('`').filter(|word| word.contains("::")).collect();
    let mut unknown = named.clone();
    let mut missing = Vec::new();
    for settings in &SETTINGS {
        let found = settings_in(&read(settings.file), settings.name);
        let stale: Vec<_> = settings.others.iter().filter(|other| !found.contains(**other)).collect();
        assert!(!found.is_empty() && stale.is_empty(), "{} has no {stale:?} in {}", settings.name, settings.file);
        for setting in found {
            let path = format!("{}::{setting}", settings.name);
            let is_named = named.contains(path.as_str());
            unknown.remove(path.as_str());
            let is_other = settings.others.contains(&setting.as_str());
            assert!(!(is_named && is_other), "{path} is named, and is one of the others");
            if settings.is_complete && !is_named && !is_other {
                missing.push(path);
            }
        }
    }
    assert!(missing.is_empty(), "SECURITY.md does not name {missing:?}");
    assert!(unknown.is_empty(), "SECURITY.md names {unknown:?}, which there is not");
}

/// The defaults that the page gives are those of the code, as far as a type shows them.
#[test]
fn security_md_gives_the_defaults_there_are() {
    let shown = [
        ("jsonrpc::Limits", format!("{:?}", jsonrpc::Limits::default())),
        ("Limits", format!("{:?}", Limits::default())),
        ("CallOptions", format!("{:?}", CallOptions::default())),
        ("ListLimits", format!("{:?}", ListLimits::default())),
        ("MemoryEventLimits", format!("{:?}", MemoryEventLimits::default())),
        ("MemoryHandleLimits", format!("{:?}", MemoryHandleLimits::default())),
        ("RedisOptions", format!("{:?}", RedisOptions::default())),
        ("RetryLimits", format!("{:?}", RetryLimits::default())),
        ("TaskLimits", format!("{:?}", TaskLimits::default())),
        ("RestartPolicy", format!("{:?}", RestartPolicy::default())),
        ("ServeOptions", format!("{:?}", ServeOptions::default())),
        ("SessionOptions", format!("{:?}", SessionOptions::default())),
        ("FollowLimits", format!("{:?}", FollowLimits::default())),
        ("TaskSettings", format!("{:?}", TaskSettings::default())),
        ("ShutdownTimeouts", format!("{:?}", ShutdownTimeouts::default())),
    ];
    let mut compared = 0;
    for row in read("SECURITY.md").lines().filter(|line| line.contains("::")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [_, settings, defaults, _] = cells.as_slice() else { continue };
        let defaults = defaults.split_once(';').map_or(*defaults, |(default, _)| default);
        for (setting, default) in settings.split(", ").zip(defaults.split(", ")) {
            let Some((name, setting)) = setting.trim_matches('`').rsplit_once("::") else { continue };
            let Some((_, shown)) = shown.iter().find(|(known, _)| *known == name) else { continue };
            let value = shown.split_once(&format!(" {setting}: ")).map(|(_, rest)| rest);
            let value = value.and_then(|rest| rest.trim_start_matches("Some(").split([',', ')', ' ']).next());
            assert_eq!(value, Some(in_code(default).as_str()), "{name}::{setting} is not {default}");
            compared += 1;
        }
    }
    assert!(compared > 40, "only {compared} defaults were compared");
}

/// A number with a unit, as the code shows it.
fn in_code(text: &str) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number: u64 = number.replace(',', "").parse().unwrap_or_else(|_| panic!("{text} is not a number"));
    match unit {
        "" => number.to_string(),
        "KiB" => (number << 10).to_string(),
        "MiB" => (number << 20).to_string(),
        "ms" => format!("{number}ms"),
        "s" => format!("{number}s"),
        "min" => format!("{}s", number * 60),
        "h" => format!("{}s", number * 3600),
        _ => panic!("{text} has no unit that is known"),
    }
}

/// The public fields of a type, and its setters as of a builder.
fn settings_in(text: &str, name: &str) -> BTreeSet<String> {
    let name = name.rsplit("::").next().unwrap_or_default();
    let mut is_inside = false;
    let mut settings = BTreeSet::new();
    for line in text.lines() {
        let is_of_type = line.split(|sign: char| !sign.is_alphanumeric()).any(|word| word == name);
        if line.starts_with("pub struct ") || line.starts_with("impl") {
            is_inside = is_of_type && !line.contains(" for ");
        }
        let Some(item) = line.strip_prefix("    pub ").filter(|_| is_inside) else { continue };
        let setting = match item.strip_prefix("fn ") {
            Some(function) => function.split_once(['(', '<']).filter(|(_, rest)| {
                rest.contains("(mut self") || ["mut self", "self, "].iter().any(|own| rest.starts_with(own))
            }),
            None => item.split_once(": ").filter(|(field, _)| !field.contains(' ')),
        };
        settings.extend(setting.map(|(setting, _)| setting.to_owned()));
    }
    settings
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}
