//! Commands from configuration files.

use mcp_client::config::CommandConfig;

use crate::ServerCommand;

/// Creates the command of a configuration file, with the environment that the file sets beside what a server inherits.
///
/// # Examples
///
/// ```
/// use mcp_client::config::{ServerEntry, ServersConfig};
/// use mcp_transport_stdio::{ChildTransport, ServerCommand};
///
/// let config = ServersConfig::parse(r#"{ "mcpServers": { "notes": { "command": "notes-server" } } }"#)?;
/// if let Some(ServerEntry::Command(notes)) = config.get("notes") {
///     let transport = ChildTransport::new(ServerCommand::from(notes));
/// #   drop(transport);
/// }
/// # Ok::<_, mcp_client::config::InvalidConfig>(())
/// ```
impl From<&CommandConfig> for ServerCommand {
    fn from(config: &CommandConfig) -> Self {
        let mut command = Self::new(&config.command).args(&config.args);
        for (name, value) in &config.env {
            command = command.env(name, value);
        }
        match &config.cwd {
            Some(cwd) => command.current_dir(cwd),
            None => command,
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use mcp_client::config::{ServerEntry, ServersConfig};
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::ShutdownTimeouts;

    /// Arguments, environment and working directory reach the server.
    // covers: GW-10
    #[tokio::test]
    async fn gw_10_configurations_become_commands() {
        let text = r#"{ "mcpServers": { "it": {
            "command": "sh", "args": ["-c", "printf '%s|' \"$A\"; pwd", "unused"], "env": { "A": "b c" }, "cwd": "/"
        } } }"#;
        let config = ServersConfig::parse(text).unwrap();
        let Some(ServerEntry::Command(config)) = config.get("it") else { panic!("no command") };
        let mut child = ServerCommand::from(config).spawn().unwrap();
        let mut printed = String::new();
        child.take_stdout().unwrap().read_to_string(&mut printed).await.unwrap();
        assert_eq!(printed, "b c|/\n");
        drop(child.take_stdin());
        child.shutdown(ShutdownTimeouts::default()).await.unwrap();
    }
}
