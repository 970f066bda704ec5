use super::*;

/// A file as desktop clients write it, with members that are not known here.
const FILE: &str = r#"{
  "theme": "dark",
  "mcpServers": {
    "local": {
      "command": "npx", "args": ["-y", "server", "--key=${KEY}"], "env": { "TOKEN": "secret-${KEY}", "A": "b" },
      "cwd": "${HOME:-/tmp}/x", "disabled": false, "autoApprove": ["a"]
    },
    "bare": { "type": "stdio", "command": "server" },
    "remote": {
      "url": "https://user:secret@example.com/secret/mcp?key=${KEY}",
      "headers": { "Authorization": "Bearer ${KEY}", "X-Plain": "$HOME {a}" }
    },
    "old": { "type": "sse", "url": "http://127.0.0.1/sse" },
    "typed": { "type": "http", "url": "http://127.0.0.1/mcp", "command": "unused" }
  }
}"#;

fn parsed() -> ServersConfig {
    ServersConfig::parse(FILE).unwrap()
}

fn command<'a>(config: &'a ServersConfig, name: &str) -> &'a CommandConfig {
    let Some(ServerEntry::Command(command)) = config.get(name) else { panic!("no command") };
    command
}

fn url<'a>(config: &'a ServersConfig, name: &str) -> &'a UrlConfig {
    let Some(ServerEntry::Url(url)) = config.get(name) else { panic!("no URL") };
    url
}

// covers: GW-10
#[test]
fn gw_10_configurations_are_read() {
    let config = parsed();
    let names: Vec<_> = config.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["local", "bare", "remote", "old", "typed"]);
    let local = command(&config, "local");
    assert_eq!(local.args, ["-y", "server", "--key=${KEY}"]);
    assert_eq!(local.env, [("TOKEN".into(), "secret-${KEY}".into()), ("A".to_owned(), "b".to_owned())]);
    assert_eq!(command(&config, "bare"), &CommandConfig { command: "server".into(), ..CommandConfig::default() });
    assert_eq!(url(&config, "remote").transport, None);
    assert_eq!(url(&config, "old").transport, Some(UrlTransport::Sse));
    assert_eq!(url(&config, "typed").transport, Some(UrlTransport::StreamableHttp));
    assert!(config.get("other").is_none());
}

/// Variables are expanded once, wherever there are values, and only on demand.
// covers: GW-10
#[test]
fn gw_10_variables_are_expanded() {
    let lookup = |name: &str| (name == "KEY").then(|| "a ${KEY} $(b)".to_owned());
    let config = parsed().expand(lookup).unwrap();
    let local = command(&config, "local");
    assert_eq!(local.args[2], "--key=a ${KEY} $(b)");
    assert_eq!((local.env[0].1.as_str(), local.cwd.as_deref()), ("secret-a ${KEY} $(b)", Some("/tmp/x")));
    let remote = url(&config, "remote");
    assert_eq!(remote.headers[0].1, "Bearer a ${KEY} $(b)");
    assert_eq!(remote.headers[1].1, "$HOME {a}");
    let error = parsed().expand(|_| None).unwrap_err().to_string();
    assert_eq!(error, "server `local`: the environment variable `KEY` is not set");
    for (text, expected) in [
        ("${A:-}", Ok("")),
        ("${A:-x:-y}", Ok("x:-y")),
        ("${EMPTY:-x}", Ok("x")),
        ("${EMPTY}", Ok("")),
        ("$A $", Ok("$A $")),
        ("${A", Err("`${` has no `}`")),
        ("${input:secret}", Err("`${...}` must contain the name of an environment variable")),
        ("${}", Err("`${...}` must contain the name of an environment variable")),
    ] {
        let lookup = |name: &str| (name == "EMPTY").then(String::new);
        assert_eq!(expansion::expand(text, &lookup).as_deref().map_err(String::as_str), expected, "{text}");
    }
}

/// Secrets are in neither `Debug` nor errors.
// covers: GW-10
#[test]
fn gw_10_secrets_are_not_shown() {
    let shown = format!("{:?}", parsed());
    assert!(shown.contains("npx") && shown.contains("TOKEN") && shown.contains("https://example.com"), "{shown}");
    assert!(shown.contains("Authorization"), "{shown}");
    for secret in ["secret", "KEY", "Bearer", "--key"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    for (server, reason) in [
        (r#"{ "command": "a", "env": "secret" }"#, "`env` must be an object of strings"),
        (r#"{ "command": "a", "env": { "B": 1 } }"#, "`env` must be an object of strings"),
        (r#"{ "command": "a", "args": "secret" }"#, "`args` must be a list of strings"),
        (r#"{ "command": ["secret"] }"#, "`command` must be a string"),
        (r#"{ "url": "http://a", "headers": ["secret"] }"#, "`headers` must be an object of strings"),
        (r#"{ "type": "secret", "url": "http://a" }"#, "`type` must be `stdio`, `http`, `streamable-http` or `sse`"),
        (r#"{ "type": "stdio", "url": "http://a" }"#, "`type` is stdio, and `command` is missing"),
        (r#"{ "type": "http", "command": "a" }"#, "`url` is missing"),
        (r#"{ "command": "a", "url": "http://a" }"#, "has `command` and `url`; `type` must say which one counts"),
        ("{}", "`command` or `url` is missing"),
    ] {
        let error = ServersConfig::parse(&format!(r#"{{"mcpServers":{{"it":{server}}}}}"#)).unwrap_err();
        assert_eq!(error.to_string(), format!("server `it`: {reason}"));
    }
    for text in ["", "[]", "{}", r#"{"mcpServers":[]}"#, r#"{"mcpServers":{"it":"secret"}}"#] {
        assert_eq!(ServersConfig::parse(text), Err(InvalidConfig::NotServers), "{text}");
    }
}
