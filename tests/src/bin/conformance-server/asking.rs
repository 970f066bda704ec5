//! Tools that ask the client while they run, which only the legacy era knows.

use mcp_server::types::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestFormParams, EnumOption, LegacyTitledEnumSchema,
    OrderedMap, RequestedSchema, SamplingMessage, TitledItems, TitledMultiSelectEnumSchema,
    TitledSingleSelectEnumSchema, UntitledItems, UntitledMultiSelectEnumSchema, UntitledSingleSelectEnumSchema,
};
use mcp_server::{AskError, Elicited, NoArguments, RequestContext, ServerBuilder, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(tool("test_sampling", sampling).description("Has the model of the client answer a prompt"))
        .tool(tool("test_elicitation", elicitation).description("Asks the user for a name and an address"))
        .tool(tool("test_elicitation_sep1034_defaults", defaults).description("Asks with a form that has defaults"))
        .tool(tool("test_elicitation_sep1330_enums", enums).description("Asks with every kind of choice"))
        .tool(tool("test_list_roots", list_roots).description("Lists the roots of the client"))
}

#[derive(Deserialize, JsonSchema)]
struct Sampling {
    /// What the model gets to read.
    prompt: String,
}

async fn sampling(ctx: RequestContext, Sampling { prompt }: Sampling) -> Result<String, AskError> {
    let question = CreateMessageRequestParams::new(vec![SamplingMessage::user(prompt)], 100);
    let answer = ctx.sample("sampling", question).await?;
    Ok(format!("LLM response: {}", text_of(&answer)))
}

/// What a model wrote.
pub(crate) fn text_of(answer: &CreateMessageResult) -> String {
    answer.content.as_slice().iter().filter_map(|content| content.as_text()).collect()
}

#[derive(Deserialize, JsonSchema)]
struct Elicitation {
    /// What the user gets to read.
    message: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct User {
    /// Your name
    username: String,
    /// Your e-mail address
    #[schemars(email)]
    email: String,
}

async fn elicitation(ctx: RequestContext, Elicitation { message }: Elicitation) -> Result<String, AskError> {
    Ok(told(&ctx.elicit::<User>("user", message).await?))
}

/// Fields that the user may leave as they are.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Defaults {
    /// User name
    name: String,
    /// User age
    age: i64,
    /// User score
    score: f64,
    /// User status
    status: Status,
    /// Verification status
    verified: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { name: "John Doe".to_owned(), age: 30, score: 95.5, status: Status::Active, verified: true }
    }
}

async fn defaults(ctx: RequestContext, _: NoArguments) -> Result<String, AskError> {
    Ok(told(&ctx.elicit::<Defaults>("defaults", "Please review the defaults").await?))
}

/// A type has one way to offer choices; this form has them all, so it is written by hand.
async fn enums(ctx: RequestContext, _: NoArguments) -> Result<String, AskError> {
    let values = || ["option1", "option2", "option3"].map(str::to_owned).to_vec();
    let labels = || ["First option", "Second option", "Third option"].map(str::to_owned).to_vec();
    let options = || values().into_iter().zip(labels()).map(|(value, label)| EnumOption::new(value, label)).collect();
    let form = RequestedSchema::new(OrderedMap::new())
        .field("untitledSingle", UntitledSingleSelectEnumSchema::new(values()))
        .field("titledSingle", TitledSingleSelectEnumSchema::new(options()))
        .field("legacyEnum", LegacyTitledEnumSchema::new(values()).names(labels()))
        .field("untitledMulti", UntitledMultiSelectEnumSchema::new(UntitledItems::new(values())))
        .field("titledMulti", TitledMultiSelectEnumSchema::new(TitledItems::new(options())));
    Ok(told(&ctx.elicit_form("enums", ElicitRequestFormParams::new("Please choose", form)).await?))
}

async fn list_roots(ctx: RequestContext, _: NoArguments) -> Result<String, AskError> {
    let roots = ctx.list_roots("roots").await?;
    Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
}

/// What the user did, in the words of the protocol.
fn told<T: Serialize>(answer: &Elicited<T>) -> String {
    match answer {
        Elicited::Accepted(content) => {
            let content = serde_json::to_string(content).unwrap_or_else(|fault| fault.to_string());
            format!("User response: action=accept, content={content}")
        }
        Elicited::Declined => "User response: action=decline".to_owned(),
        Elicited::Cancelled => "User response: action=cancel".to_owned(),
    }
}
