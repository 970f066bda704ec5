//! Finds the handler of a request, and calls it.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{
    CacheScope, CompleteRequestParams, CompletionReference, ErrorObject, GetPromptRequestParams, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, RawObject,
    ReadResourceRequestParams,
};
use serde::de::DeserializeOwned;

use crate::build::registry::{NamedList, Registry};
use crate::build::settings::ListKind;
use crate::handlers::completion::{self, CompletionInput};
use crate::handlers::resource::RequestedUri;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::{Dispatched, Request};
use crate::serve::page::page;
use crate::serve::response::Response;

/// Calls the handler that is registered at this moment.
pub(crate) fn dispatch(request: Request) -> Dispatched {
    let Request { ctx } = request;
    let this = ctx.clone();
    let params = this.params();
    let registry = ctx.server().registry();
    let served = match ctx.method().as_str() {
        "tools/call" => return call_tool(&registry, ctx, params).unwrap_or_else(|error| Dispatched::Ready(Err(error))),
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
        "server/discover"
        | "logging/setLevel"
        | "resources/subscribe"
        | "resources/unsubscribe"
        | "subscriptions/listen" => Ok(Response::ByProtocol),
        method => match registry.methods.get(ctx.method()) {
            Some(custom) => return call_extension_method(custom, ctx, params),
            None => Err(ErrorObject::method_not_found(format!("there is no method `{method}` here"))),
        },
    };
    Dispatched::Ready(served)
}

fn decode<T: DeserializeOwned>(params: &PayloadBuf) -> Result<T, ErrorObject> {
    params.decode().map_err(|fault| ErrorObject::invalid_params(fault.to_string()))
}

/// Calls a tool. Only the name is read here; the arguments go to the tool as they are.
fn call_tool(registry: &Registry, ctx: RequestContext, params: &PayloadBuf) -> Result<Dispatched, ErrorObject> {
    let invalid = |why: &dyn std::fmt::Display| ErrorObject::invalid_params(format!("`name`: {why}"));
    let name = params.get("name").ok_or_else(|| ErrorObject::invalid_params("missing field `name`"))?;
    let name: Cow<'_, str> = serde_json::from_str::<Text<'_>>(name.get()).map_err(|fault| invalid(&fault))?.0;
    // TL-15
    let unknown = || ErrorObject::invalid_params(format!("Unknown tool: {name}"));
    let tool = registry.tools.get(&name).ok_or_else(unknown)?;
    let arguments = arguments_of(params);
    if !arguments.starts_with('{') {
        return Err(ErrorObject::invalid_params("`arguments`: expected an object"));
    }
    let errors = ctx.server().settings().argument_errors;
    #[cfg(feature = "validate")]
    if let Some(fault) = registry.validators.get(&*name).and_then(|validators| validators.check_arguments(arguments)) {
        return Ok(Dispatched::Ready(errors.respond(fault)));
    }
    #[cfg(not(feature = "mrtr"))]
    let call = (tool.handler)(ctx, arguments, errors);
    #[cfg(feature = "mrtr")]
    let call = match tool.handles.find {
        None => (tool.handler)(ctx, arguments, errors),
        Some(find) => crate::handles::call::call(Arc::clone(tool), find, ctx, errors),
    };
    #[cfg(feature = "validate")]
    let call = crate::handlers::validate::checked(registry.validators.get(&*name).cloned(), call);
    Ok(Dispatched::Pending(call))
}

/// The arguments of a tool call; an empty object if there are none.
pub(crate) fn arguments_of(params: &PayloadBuf) -> &str {
    params.get("arguments").map(|raw| raw.get()).filter(|text| *text != "null").unwrap_or("{}")
}

/// A string, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn list_tools(registry: &Registry, ctx: &RequestContext, params: &PayloadBuf) -> Result<Response, ErrorObject> {
    let (tools, next) = requested_page(&registry.tools, |tool| &tool.definition.name, ctx, params)?;
    let mut result = ListToolsResult::new(tools.iter().map(|tool| tool.definition.clone()).collect());
    result.next_cursor = next;
    (result.ttl_ms, result.cache_scope) = cache(ctx, ListKind::Tools);
    Ok(Response::Tools(result))
}

fn list_prompts(registry: &Registry, ctx: &RequestContext, params: &PayloadBuf) -> Result<Response, ErrorObject> {
    let (prompts, next) = requested_page(&registry.prompts, |prompt| &prompt.definition.name, ctx, params)?;
    let mut result = ListPromptsResult::new(prompts.iter().map(|prompt| prompt.definition.clone()).collect());
    result.next_cursor = next;
    (result.ttl_ms, result.cache_scope) = cache(ctx, ListKind::Prompts);
    Ok(Response::Prompts(result))
}

fn list_resources(registry: &Registry, ctx: &RequestContext, params: &PayloadBuf) -> Result<Response, ErrorObject> {
    let (resources, next) = requested_page(&registry.resources, |resource| &resource.definition.uri, ctx, params)?;
    let mut result = ListResourcesResult::new(resources.iter().map(|resource| resource.definition.clone()).collect());
    result.next_cursor = next;
    (result.ttl_ms, result.cache_scope) = cache(ctx, ListKind::Resources);
    Ok(Response::Resources(result))
}

fn list_templates(registry: &Registry, ctx: &RequestContext, params: &PayloadBuf) -> Result<Response, ErrorObject> {
    let (templates, next) =
        requested_page(&registry.templates, |template| &template.definition.uri_template, ctx, params)?;
    let mut result =
        ListResourceTemplatesResult::new(templates.iter().map(|template| template.definition.clone()).collect());
    result.next_cursor = next;
    (result.ttl_ms, result.cache_scope) = cache(ctx, ListKind::Templates);
    Ok(Response::Templates(result))
}

/// The requested page of a list.
fn requested_page<'a, T>(
    list: &'a NamedList<T>,
    name: impl Fn(&T) -> &String,
    ctx: &RequestContext,
    params: &PayloadBuf,
) -> Result<(&'a [Arc<T>], Option<String>), ErrorObject> {
    let PaginatedRequestParams { cursor, .. } = decode(params)?;
    page(&list.items, |item| name(item), ctx.server().settings().page_size, cursor.as_deref())
}

/// The cache settings of a list; the kernel fills in the defaults.
fn cache(ctx: &RequestContext, list: ListKind) -> (Option<i64>, Option<CacheScope>) {
    ctx.server().settings().caches.get(&list).map_or((None, None), |(ttl, scope)| (Some(*ttl), Some(scope.clone())))
}

fn get_prompt(registry: &Registry, ctx: RequestContext, params: &PayloadBuf) -> Result<Dispatched, ErrorObject> {
    let GetPromptRequestParams { name, arguments, .. } = decode(params)?;
    let unknown = || ErrorObject::invalid_params(format!("Unknown prompt: {name}"));
    let prompt = registry.prompts.get(&name).ok_or_else(unknown)?;
    let arguments = arguments.unwrap_or_default();
    if let Some(missing) = prompt.missing(&arguments) {
        // PR-5
        return Err(ErrorObject::invalid_params(format!("missing argument `{missing}`")));
    }
    Ok(Dispatched::Pending((prompt.handler)(ctx, &arguments)))
}

fn read_resource(registry: &Registry, ctx: RequestContext, params: &PayloadBuf) -> Result<Dispatched, ErrorObject> {
    let ReadResourceRequestParams { uri, .. } = decode(params)?;
    let limit = ctx.server().config().limits.max_uri_bytes;
    if uri.len() > limit {
        return Err(ErrorObject::invalid_params(format!("`uri`: more than {limit} bytes (`max_uri_bytes`)")));
    }
    let read = if let Some(resource) = registry.resources.get(&uri) {
        resource.read(ctx)
    } else {
        let found = registry.templates.items.iter().find_map(|template| {
            let variables = template.template.as_ref()?.matches(&uri)?;
            Some((template, variables))
        });
        let Some((template, variables)) = found else {
            // RS-2, RS-3: the code depends on the revision.
            return Err(ErrorObject::resource_not_found(ctx.revision(), uri));
        };
        template.read(ctx, RequestedUri { uri: &uri, variables })
    };
    Ok(Dispatched::Pending(read))
}

fn complete(registry: &Registry, ctx: RequestContext, params: &PayloadBuf) -> Result<Dispatched, ErrorObject> {
    let CompleteRequestParams { reference, argument, context, .. } = decode(params)?;
    //
    let unknown = |what: String| ErrorObject::invalid_params(what);
    let (completers, arguments): (_, Vec<&str>) = match &reference {
        CompletionReference::Prompt(prompt) => {
            let found = registry.prompts.get(&prompt.name);
            let prompt = found.ok_or_else(|| unknown(format!("Unknown prompt: {}", prompt.name)))?;
            let arguments = prompt.definition.arguments.iter().flatten().map(|known| known.name.as_str()).collect();
            (&prompt.completers, arguments)
        }
        CompletionReference::Resource(template) => {
            let found = registry.templates.get(&template.uri);
            let template = found.ok_or_else(|| unknown(format!("Unknown resource template: {}", template.uri)))?;
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
    let suggested = completer.complete(ctx, CompletionInput { value: argument.value, arguments });
    Ok(Dispatched::Pending(Box::pin(async move { Ok(Response::Completion(completion::result(suggested.await))) })))
}

fn call_extension_method(
    custom: &crate::handlers::extension_method::ExtensionMethod,
    ctx: RequestContext,
    params: &PayloadBuf,
) -> Dispatched {
    match RawObject::parse(params.as_str()) {
        Ok(params) => {
            let answered = custom(ctx, params);
            Dispatched::Pending(Box::pin(async move { answered.await.map(Response::Other) }))
        }
        Err(fault) => Dispatched::Ready(Err(ErrorObject::invalid_params(fault.to_string()))),
    }
}
