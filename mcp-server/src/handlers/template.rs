//! Resource templates.

use std::sync::Arc;

use crate::auth::required_scopes::{RequiredScopes, scope_setters};
use crate::handlers::completion::{Completer, Completers};
use crate::handlers::contents::{ContentsDefaults, IntoContents, read_or_refuse, read_response, readable};
use crate::handlers::definition::definition_setters;
use crate::handlers::extract::{HandlerFunction, Requirements, Signature, TemplateKind};
use crate::handlers::function::ContextFunction;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::ResponseFuture;
use crate::uri_template::{UriTemplate, UriVariables};
use crate::visibility::predicate::{Predicate, visibility_setters};

/// The requested URI, and the variables that a template found in it.
pub(crate) struct RequestedUri<'a> {
    pub(crate) uri: &'a str,
    pub(crate) variables: UriVariables,
}

pub(crate) type TemplateHandler =
    Arc<dyn Fn(RequestContext, RequestedUri<'_>, ContentsDefaults) -> ResponseFuture + Send + Sync>;

/// A resource template: resources whose URIs match a URI template. Created by [`template`], [`template_fn`] or
/// [`Template::from_raw`].
#[derive(Clone)]
#[must_use = "a template that is not added to a server does nothing"]
pub struct Template {
    pub(crate) definition: mcp_types::ResourceTemplate,
    pub(crate) template: Option<UriTemplate>,
    pub(crate) handler: TemplateHandler,
    pub(crate) defaults: ContentsDefaults,
    pub(crate) completers: Completers,
    pub(crate) fault: Option<String>,
    pub(crate) requirements: Requirements,
    pub(crate) visible: Option<Predicate>,
    pub(crate) scopes: RequiredScopes,
}

/// Creates a resource template from an async function that reads all resources whose URIs match a URI template (RFC 6570).
///
/// The function gets the values of the variables in the URI, percent-decoded. They come from the client: check them before
/// they become part of a path.
///
/// # Examples
///
/// ```
/// use mcp_server::{RequestContext, UriVariables, template};
///
/// let day = template("logs://{day}", "log", async |_: RequestContext, variables: UriVariables| {
///     let day: u32 = variables.get("day")?.parse().ok()?;
///     Some(format!("nothing happened on day {day}"))
/// });
/// ```
pub fn template<F, Fut, R>(uri_template: impl Into<String>, name: impl Into<String>, read: F) -> Template
where
    F: ContextFunction<UriVariables, Fut, R>,
    Fut: Send + 'static,
    R: IntoContents + 'static,
{
    let handler =
        Arc::new(move |ctx: RequestContext, address: RequestedUri<'_>, defaults: ContentsDefaults| -> ResponseFuture {
            let uri = address.uri.to_owned();
            let reading = read.start(ctx.clone(), address.variables);
            Box::pin(async move { read_response(&ctx, &uri, &defaults, reading.await) })
        });
    Template::new::<R>(uri_template.into(), name, handler)
}

/// Creates a resource template from an async function whose parameters are, in any order and number up to eight, a struct with
/// the variables of the URI and values that are taken from the request; see [`tool_fn`](crate::tool_fn).
///
/// The values of the variables are text, from which the numbers, booleans and enums of the struct are parsed; an `Option` is
/// for an optional parameter. A value that does not fit means that there is no such resource: the client gets that error, and
/// the function is not called. [`UriVariables`] as a parameter has the variables as they are.
///
/// # Examples
///
/// ```
/// use mcp_server::template_fn;
///
/// #[derive(serde::Deserialize)]
/// struct Day { year: u16, day: u16 }
///
/// let log = template_fn("logs://{year}/{day}", "log", async |Day { year, day }: Day| {
///     (1..=366).contains(&day).then(|| format!("nothing happened on day {day} of {year}"))
/// });
/// ```
pub fn template_fn<Params, F>(uri_template: impl Into<String>, name: impl Into<String>, function: F) -> Template
where
    F: HandlerFunction<TemplateKind, Params>,
    F::Output: IntoContents + 'static,
{
    let signature = Signature::of::<TemplateKind, Params, F>();
    let function = Arc::new(function);
    let handler =
        Arc::new(move |ctx: RequestContext, address: RequestedUri<'_>, defaults: ContentsDefaults| -> ResponseFuture {
            let uri = address.uri.to_owned();
            let reading = F::call(Arc::clone(&function), ctx.clone(), address.variables);
            Box::pin(async move { read_or_refuse(&ctx, &uri, &defaults, reading.await) })
        });
    let mut template = Template::new::<F::Output>(uri_template.into(), name, handler);
    template.fault = template.fault.or(signature.fault);
    template.requirements = signature.requirements;
    template
}

impl Template {
    fn new<R: IntoContents>(uri_template: String, name: impl Into<String>, handler: TemplateHandler) -> Self {
        let parsed = UriTemplate::parse(&uri_template);
        let fault = parsed.as_ref().err().map(ToString::to_string);
        let template = Self {
            definition: mcp_types::ResourceTemplate::new(name, uri_template),
            template: parsed.ok(),
            handler,
            defaults: ContentsDefaults::default(),
            completers: Completers::default(),
            fault: fault.or_else(|| R::registration_fault().map(str::to_owned)),
            requirements: Requirements::default(),
            visible: None,
            scopes: RequiredScopes::new(),
        };
        match R::default_mime_type() {
            Some(mime_type) => template.mime_type(mime_type),
            None => template,
        }
    }

    pub(crate) fn read(&self, ctx: RequestContext, address: RequestedUri<'_>) -> ResponseFuture {
        (self.handler)(ctx, address, self.defaults.of_restricted(self.visible.is_some() || !self.scopes.is_empty()))
    }

    /// Returns the values of the variables, if a URI is one of the template.
    pub(crate) fn matches(&self, uri: &str) -> Option<UriVariables> {
        self.template.as_ref()?.matches(uri)
    }

    /// Adds a completer, which suggests values for a variable.
    pub fn complete(mut self, variable: &str, completer: impl Completer) -> Self {
        let is_known = self.template.as_ref().is_none_or(|template| template.variables().any(|name| name == variable));
        if !is_known {
            self.fault.get_or_insert_with(|| format!("there is no variable `{variable}` to complete"));
        }
        if let Some(fault) = completer.registration_fault() {
            self.fault.get_or_insert_with(|| fault.to_owned());
        }
        self.completers.insert(variable, completer);
        self
    }
}

readable!(Template);
visibility_setters!(Template);
scope_setters!(Template);
definition_setters!(Template: "Sets the description of the resources.");
