//! Finds the handler of a request, and calls it.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{
    CacheScope, CompleteRequestParams, CompletionReference, ErrorObject, GetPromptRequestParams, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, RawObject,
    ReadResourceRequestParams, SubscribeRequestParams, SubscriptionsListenRequestParams,
};
use serde::de::DeserializeOwned;

use crate::auth::required_scopes::check_scopes;
use crate::build::named_list::{Item, NamedList, is_visible};
use crate::build::registry::{Readable, Registry};
use crate::build::settings::ListKind;
use crate::handlers::arguments::text_of;
use crate::handlers::completion::{self, CompletionInput};
use crate::handlers::error_text;
use crate::handlers::prompt::check_required;
use crate::handlers::template::RequestedUri;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::Dispatched;
use crate::serve::page::{page, visible_page};
use crate::serve::param_claims::ParamClaims;
use crate::serve::response::Response;
use crate::visibility::predicate::Visible;

/// Calls the handler that is registered at this moment.
pub(crate) fn dispatch(ctx: RequestContext) -> Dispatched {
    let registry = ctx.server().registry();
    if ctx.method().as_str() == "tools/call" {
        return call_tool(&registry, ctx).unwrap_or_else(|error| Dispatched::Ready(Err(error)));
    }
    let this = ctx.clone();
    let params = this.params();
    // Requests with a target are checked together with it.
    let has_target = matches!(
        ctx.method().as_str(),
        "prompts/get" | "resources/read" | "resources/subscribe" | "subscriptions/listen" | "completion/complete"
    );
    if !has_target && let Err(error) = check_scopes(&ctx, &[]) {
        return Dispatched::Ready(Err(error));
    }
    let served = match ctx.method().as_str() {
        "tools/list" => list_tools(&registry, &ctx, params),
        "prompts/list" => list_prompts(&registry, &ctx, params),
        "resources/list" => list_resources(&registry, &ctx, params),
        "resources/templates/list" => list_templates(&registry, &ctx, params),
        "prompts/get" => {
            return get_prompt(&registry, ctx, params).unwrap_or_else(|error| Dispatched::Ready(Err(error)));
        }
        "resources/read" => {
            return read_resource(&registry, ctx, params).unwrap_or_else(|error| Dispatched::Ready(Err(error)));
        }
        "completion/complete" => {
            return complete(&registry, ctx, params).unwrap_or_else(|error| Dispatched::Ready(Err(error)));
        }
        "server/discover" | "logging/setLevel" | "resources/unsubscribe" => Ok(Response::ByProtocol),
        "resources/subscribe" => {
            let uri = decode(params).map(|SubscribeRequestParams { uri, .. }| uri).ok();
            subscribe(&registry, &ctx, uri.as_slice())
        }
        "subscriptions/listen" => {
            let filter = decode(params).map(|SubscriptionsListenRequestParams { notifications, .. }| notifications);
            let filter = filter.ok().unwrap_or_default();
            let subscribed = subscribe(&registry, &ctx, filter.resource_subscriptions.as_deref().unwrap_or_default());
            #[cfg(feature = "mrtr")]
            if let (Ok(_), Some(runtime)) = (&subscribed, &this.server().settings().tasks) {
                return crate::tasks::methods::listen(runtime, ctx, filter);
            }
            subscribed
        }
        method => match registry.methods.get(ctx.method()).or_else(|| this.server().fallback()) {
            Some(custom) => return call_extension_method(custom, ctx, params),
            None => Err(ErrorObject::method_not_found(format!("there is no method `{method}` here"))),
        },
    };
    Dispatched::Ready(served)
}

pub(crate) fn decode<T: DeserializeOwned>(params: &PayloadBuf) -> Result<T, ErrorObject> {
    params.decode().map_err(|fault| ErrorObject::invalid_params(fault.to_string()))
}

/// Calls a tool. Only the name is read here; the arguments go to the tool as they are.
fn call_tool(registry: &Registry, ctx: RequestContext) -> Result<Dispatched, ErrorObject> {
    let params = ctx.params();
    let [name, arguments] = params.find(["name", "arguments"]);
    let name = name.ok_or_else(|| ErrorObject::invalid_params("missing field `name`"))?;
    let name = decode_text(name.get()).map_err(|fault| ErrorObject::invalid_params(format!("`name`: {fault}")))?;
    // TL-15
    let unknown = || ErrorObject::invalid_params(format!("Unknown tool: {name}"));
    let tool = registry.tools.find(&name, &ctx);
    check_scopes(&ctx, tool.map(|tool| &*tool.scopes).unwrap_or_default())?;
    let tool = tool.ok_or_else(unknown)?;
    let arguments = text_of(arguments);
    if !arguments.starts_with('{') {
        return Err(ErrorObject::invalid_params("`arguments`: expected an object"));
    }
    if tool.predicate().is_some()
        && let Some(params) = registry.header_params.get(&*name)
        && let Some(claims) = ctx.extension::<ParamClaims>()
    {
        claims.check(params, arguments)?;
    }
    let errors = ctx.server().settings().argument_errors;
    #[cfg(feature = "validate")]
    if let Some(validators) = registry.validators.get(&*name).cloned() {
        return Ok(match validators.check_arguments(arguments) {
            Some(fault) => Dispatched::Ready(errors.respond(fault)),
            None => Dispatched::Pending(validators.check_result_of((tool.handler)(ctx, errors))),
        });
    }
    Ok(Dispatched::Pending((tool.handler)(ctx, errors)))
}

/// Decodes a string. Most have no escapes, and are not copied.
fn decode_text(raw: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    match raw.strip_prefix('"').and_then(|text| text.strip_suffix('"')).filter(|text| !text.as_bytes().contains(&b'\\'))
    {
        Some(plain) => Ok(Cow::Borrowed(plain)),
        None => serde_json::from_str(raw).map(Cow::Owned),
    }
}

fn list_tools(registry: &Registry, ctx: &RequestContext, params: &PayloadBuf) -> Result<Response, ErrorObject> {
    let list = &registry.tools;
    let (definitions, next_cursor) = requested_page(list, ctx, params)?;
    let mut result = ListToolsResult::new(definitions);
    result.next_cursor = next_cursor;
    (result.ttl_ms, result.cache_scope) = cache(ctx, ListKind::Tools, list.is_restricted());
    Ok(Response::Tools(result))
}

fn list_prompts(registry: &Registry, ctx: &RequestContext, params: &PayloadBuf) -> Result<Response, ErrorObject> {
    let list = &registry.prompts;
    let (definitions, next_cursor) = requested_page(list, ctx, params)?;
    let mut result = ListPromptsResult::new(definitions);
    result.next_cursor = next_cursor;
    (result.ttl_ms, result.cache_scope) = cache(ctx, ListKind::Prompts, list.is_restricted());
    Ok(Response::Prompts(result))
}

fn list_resources(registry: &Registry, ctx: &RequestContext, params: &PayloadBuf) -> Result<Response, ErrorObject> {
    let list = &registry.resources;
    let (definitions, next_cursor) = requested_page(list, ctx, params)?;
    let mut result = ListResourcesResult::new(definitions);
    result.next_cursor = next_cursor;
    (result.ttl_ms, result.cache_scope) = cache(ctx, ListKind::Resources, list.is_restricted());
    Ok(Response::Resources(result))
}

fn list_templates(registry: &Registry, ctx: &RequestContext, params: &PayloadBuf) -> Result<Response, ErrorObject> {
    let list = &registry.templates;
    let (definitions, next_cursor) = requested_page(list, ctx, params)?;
    let mut result = ListResourceTemplatesResult::new(definitions);
    result.next_cursor = next_cursor;
    (result.ttl_ms, result.cache_scope) = cache(ctx, ListKind::Templates, list.is_restricted());
    Ok(Response::Templates(result))
}

/// The definitions on the requested page of a list, and the cursor of the next one.
fn requested_page<T: Item>(
    list: &NamedList<T>,
    ctx: &RequestContext,
    params: &PayloadBuf,
) -> Result<(Vec<T::Definition>, Option<String>), ErrorObject> {
    let PaginatedRequestParams { cursor, .. } = decode(params)?;
    let (size, cursor) = (ctx.server().settings().page_size, cursor.as_deref());
    if list.is_restricted() {
        let is_visible = |item: &Arc<T>| is_visible(&**item, ctx);
        let (items, next_cursor) = visible_page(&list.items, |item| item.key(), is_visible, size, cursor)?;
        return Ok((items.into_iter().map(|item| item.definition().clone()).collect(), next_cursor));
    }
    let (items, next_cursor) = page(&list.items, |item| item.key(), size, cursor)?;
    Ok((items.iter().map(|item| item.definition().clone()).collect(), next_cursor))
}

/// The cache settings of a list; the kernel fills in the defaults. A list that depends on the viewer is not cached for several
/// users.
fn cache(ctx: &RequestContext, list: ListKind, is_restricted: bool) -> (Option<i64>, Option<CacheScope>) {
    let set = ctx.server().settings().caches.get(&list);
    let (ttl, scope) = set.map_or((None, None), |(ttl, scope)| (Some(*ttl), Some(scope.clone())));
    (ttl, if is_restricted { Some(CacheScope::PRIVATE) } else { scope })
}

fn get_prompt(registry: &Registry, ctx: RequestContext, params: &PayloadBuf) -> Result<Dispatched, ErrorObject> {
    let GetPromptRequestParams { name, arguments, .. } = decode(params)?;
    let unknown = || ErrorObject::invalid_params(format!("Unknown prompt: {name}"));
    let prompt = registry.prompts.find(&name, &ctx);
    check_scopes(&ctx, prompt.map(|prompt| &*prompt.scopes).unwrap_or_default())?;
    let prompt = prompt.ok_or_else(unknown)?;
    let arguments = arguments.unwrap_or_default();
    check_required(&prompt.required, &arguments)?;
    Ok(Dispatched::Pending((prompt.handler)(ctx, &arguments)))
}

fn read_resource(registry: &Registry, ctx: RequestContext, params: &PayloadBuf) -> Result<Dispatched, ErrorObject> {
    let ReadResourceRequestParams { uri, .. } = decode(params)?;
    let limit = ctx.server().config().limits.max_uri_bytes;
    if uri.len() > limit {
        return Err(ErrorObject::invalid_params(format!("`uri`: more than {limit} bytes (`max_uri_bytes`)")));
    }
    let readable = registry.find_readable(&uri, &ctx);
    check_scopes(&ctx, readable.as_ref().map(Readable::scopes).unwrap_or_default())?;
    match readable {
        Some(Readable::Resource(resource)) => Ok(Dispatched::Pending(resource.read(ctx))),
        Some(Readable::Template(template, variables)) => {
            Ok(Dispatched::Pending(template.read(ctx, RequestedUri { uri: &uri, variables })))
        }
        // RS-2, RS-3: the code depends on the revision.
        None => Err(ErrorObject::resource_not_found(ctx.revision(), uri)),
    }
}

/// Checks a subscription, which the protocol then stores: updates tell what those who cannot read a resource need not know.
/// The protocol reports parameters that cannot be decoded.
fn subscribe(registry: &Registry, ctx: &RequestContext, uris: &[String]) -> Result<Response, ErrorObject> {
    let scopes = uris.iter().filter_map(|uri| Some(registry.find_readable(uri, ctx)?.scopes().to_vec()));
    let scopes: Vec<Box<str>> = scopes.flatten().collect();
    check_scopes(ctx, &scopes)?;
    Ok(Response::ByProtocol)
}

fn complete(registry: &Registry, ctx: RequestContext, params: &PayloadBuf) -> Result<Dispatched, ErrorObject> {
    let CompleteRequestParams { reference, argument, context, .. } = decode(params)?;
    //
    let unknown = |what: String| ErrorObject::invalid_params(what);
    let (completers, arguments): (_, Vec<&str>) = match &reference {
        CompletionReference::Prompt(prompt) => {
            let found = registry.prompts.find(&prompt.name, &ctx);
            let prompt = found.ok_or_else(|| unknown(format!("Unknown prompt: {}", prompt.name)))?;
            check_scopes(&ctx, &prompt.scopes)?;
            let arguments = prompt.definition.arguments.iter().flatten().map(|known| known.name.as_str()).collect();
            (&prompt.completers, arguments)
        }
        CompletionReference::Resource(template) => {
            let found = registry.templates.find(&template.uri, &ctx);
            let template = found.ok_or_else(|| unknown(format!("Unknown resource template: {}", template.uri)))?;
            check_scopes(&ctx, &template.scopes)?;
            (&template.completers, template.template.iter().flat_map(|template| template.variables()).collect())
        }
        CompletionReference::Unknown(_) | _ => {
            return Err(unknown("`ref`: expected a prompt or a resource template".to_owned()));
        }
    };
    if !arguments.contains(&argument.name.as_str()) {
        return Err(unknown(format!("there is no argument `{}`", argument.name)));
    }
    let Some(completer) = completers.get(&argument.name) else {
        return Ok(Dispatched::Ready(Ok(Response::Completion(completion::result(Vec::new())))));
    };
    let arguments = context.and_then(|context| context.arguments).unwrap_or_default();
    let suggested = completer.complete(ctx.clone(), CompletionInput { value: argument.value, arguments });
    Ok(Dispatched::Pending(Box::pin(async move {
        let values = suggested.await.map_err(|error| error_text::of_handler(&ctx, &error))?;
        Ok(Response::Completion(completion::result(values)))
    })))
}

fn call_extension_method(
    custom: &crate::handlers::extension_method::ExtensionMethod,
    ctx: RequestContext,
    params: &PayloadBuf,
) -> Dispatched {
    match RawObject::parse(params.as_str()) {
        Ok(params) => {
            let result = custom(ctx, params);
            Dispatched::Pending(Box::pin(async move { result.await.map(Response::Other) }))
        }
        Err(fault) => Dispatched::Ready(Err(ErrorObject::invalid_params(fault.to_string()))),
    }
}
