//! What the server offers beside its tools, and who wants to know of changes.

#![expect(deprecated, reason = "what is legacy is to be tested as well")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, Prompt, PromptArgument,
    PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference, Resource,
    ResourceContents, ResourceTemplate, ResourceUpdatedNotificationParam, Role, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use tokio::time::sleep;

use crate::tools;

const COUNTER: &str = "test://counter";
const NAMES: [&str; 3] = ["alice", "albert", "bob"];

/// What all connections share.
#[derive(Default)]
pub(crate) struct Shared {
    counter: AtomicU64,
    /// What the next handler or listener is numbered.
    next: AtomicU64,
    /// Legacy clients that subscribed, by the number of their handler.
    subscribers: Mutex<BTreeMap<u64, Peer<RoleServer>>>,
    /// Modern clients that listen, by the number of the stream: clients choose the same ids.
    listeners: Mutex<BTreeMap<u64, SubscriptionSink>>,
}

impl Shared {
    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// Serves one legacy connection, or one modern request over HTTP.
pub(crate) struct Handler {
    shared: Arc<Shared>,
    number: u64,
}

impl Handler {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let number = shared.number();
        Self { shared, number }
    }

    /// Counts, and tells everyone who wants to know, and the caller if it is legacy. Returns the new count.
    pub(crate) async fn touch(&self, context: &RequestContext<RoleServer>) -> u64 {
        let count = self.shared.counter.fetch_add(1, Ordering::Relaxed) + 1;
        // `rmcp` acknowledges before it calls `listen`: a client that is quick would miss what it asked for.
        sleep(Duration::from_millis(50)).await;
        // Whoever hung up does not want to know: all of these may fail.
        let subscribers: Vec<_> = lock(&self.shared.subscribers).values().cloned().collect();
        for subscriber in subscribers {
            let _ = subscriber.notify_resource_updated(ResourceUpdatedNotificationParam::new(COUNTER)).await;
        }
        let listeners: Vec<_> = lock(&self.shared.listeners).values().cloned().collect();
        for listener in listeners {
            let _ = listener.notify_resource_updated(COUNTER).await;
            let _ = listener.notify_tool_list_changed().await;
        }
        if !tools::is_modern(context) {
            let _ = context.peer.notify_tool_list_changed().await;
        }
        count
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("interop", "3.0.0"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = vec![Resource::new("test://hello", "hello"), Resource::new(COUNTER, "counter")];
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let echo = ResourceTemplate::new("test://echo/{text}", "echo");
        Ok(ListResourceTemplatesResult::with_all_items(vec![echo]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = match request.uri.as_str() {
            "test://hello" => "hello".to_owned(),
            COUNTER => self.shared.counter.load(Ordering::Relaxed).to_string(),
            uri => match uri.strip_prefix("test://echo/") {
                Some(text) => text.replace("%20", " "),
                None => return Err(ErrorData::resource_not_found(format!("no resource {uri}"), None)),
            },
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        lock(&self.shared.subscribers).insert(self.number, context.peer);
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        lock(&self.shared.subscribers).remove(&self.number);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let number = self.shared.number();
        lock(&self.shared.listeners).insert(number, context.sink().clone());
        context.cancelled().await;
        lock(&self.shared.listeners).remove(&number);
        Ok(())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let name = PromptArgument::new("name").with_required(true);
        let greet = Prompt::new("greet", None::<String>, Some(vec![name]));
        let [plain, third] = ["plain", "third"].map(|name| Prompt::new(name, None::<String>, None));
        Ok(match request.and_then(|request| request.cursor).as_deref() {
            None => {
                let mut page = ListPromptsResult::with_all_items(vec![greet, plain]);
                page.next_cursor = Some("2".to_owned());
                page
            }
            Some(_) => ListPromptsResult::with_all_items(vec![third]),
        })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = match request.name.as_str() {
            "greet" => match arguments.get("name").and_then(|name| name.as_str()) {
                Some(name) => format!("Hello, {name}!"),
                None => return Err(ErrorData::invalid_params("the name is missing", None)),
            },
            "plain" | "third" => request.name,
            _ => return Err(ErrorData::invalid_params("no such prompt", None)),
        };
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let is_name = matches!(&request.r#ref, Reference::Prompt(prompt) if prompt.name == "greet")
            && request.argument.name == "name";
        let starts = |name: &&str| is_name && name.starts_with(&request.argument.value);
        let values = NAMES.into_iter().filter(starts).map(str::to_owned).collect();
        let completion = CompletionInfo::new(values).map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(completion))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
