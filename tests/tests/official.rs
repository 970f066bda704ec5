//! The types against the official schema files: what we write is what each revision allows, and what the official
//! examples say is what we read.
//!
//! The files are not part of this repository. `MCP_SCHEMA_DIR` names the folder that holds them, one folder per
//! revision; `.ci/run` runs these tests where they are found.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use jsonschema::Validator;
use mcp_server::{Connection, NoArguments, Principal, RequestContext, Server, tool};
use mcp_tasks::{MemoryTaskStore, TaskSupport, Tasks};
use mcp_testkit::ScriptedClient;
use mcp_tests::{Model, REGISTRY, Sampler, Scope, codec};
use mcp_types::jsonrpc::{Limits, Message, UnknownId, write_error, write_notification, write_request, write_result};
use mcp_types::tasks::{
    CreateTaskResult, DetailedTask, GetTaskResult, Task, TaskNotificationParams, TaskRequestParams, TaskStatus,
    UpdateTaskRequestParams,
};
use mcp_types::{
    EmptyResult, ErrorObject, InputRequests, InputResponses, Method, MissingRequiredClientCapabilityData, RawJson,
    RawObject, RequestId, ResultType, Revision, UnsupportedProtocolVersionData,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const ROUNDS: u64 = 40;

/// Every value that a type can hold in a revision validates against that revision's definition of it.
// covers: CG-1, CG-8
#[test]
fn what_the_types_encode_is_valid() {
    let model = Model::read();
    let mut checked = 0;
    for revision in Revision::ALL {
        let schema = Schema::read(&model, revision.as_str());
        for (name, codec) in REGISTRY {
            if !model.facts(name).is_some_and(|facts| facts.has("revisions", revision.as_str())) {
                continue;
            }
            let Some(validator) = schema.definition(name) else { continue };
            for seed in 0..ROUNDS {
                let value = Sampler::new(&model, Scope::Exactly(revision.as_str()), seed).value(name);
                let encoded = codec
                    .round_trip(&value.to_string())
                    .unwrap_or_else(|fault| panic!("{name} in {revision}, seed {seed}: {fault}\n{value}"));
                assert_valid(&validator, &encoded, &format!("{name} in {revision}, seed {seed}"));
                checked += 1;
            }
        }
    }
    assert!(checked > 10_000, "{checked}");
}

/// What a server with tasks sends to a client of 2025-11-25 validates: declarations, results and notifications.
// covers: B-80, B-82, B-85..B-88
#[tokio::test(start_paused = true)]
async fn tasks_of_2025_11_25_are_valid() {
    let slow = tool("slow", async |ctx: RequestContext, _: NoArguments| {
        ctx.progress((1, 2));
        tokio::time::sleep(Duration::from_secs(5)).await;
        "done"
    });
    let tasks = Tasks::new(MemoryTaskStore::default());
    let server = Server::builder("farm", "1.0").tool(slow.task(TaskSupport::Required)).tasks(tasks).build();
    let connection = Connection::long_lived(&server.expect("a server"));
    let mut client = ScriptedClient::on_connection(connection, Revision::V2025_11_25, json!({}));
    client.caller = client.caller.principal(Principal::new(None, "ann"));
    let schema = Schema::read(&Model::read(), "2025-11-25");
    let check = |name: &str, value: &Value| assert_valid(&schema.required(name), &value.to_string(), name);
    check("InitializeResult", &client.initialize()["result"]);
    client.notify("notifications/initialized", json!({}));
    let tools = client.result("tools/list", json!({}));
    assert_eq!(tools["tools"][0]["execution"]["taskSupport"], "required");
    check("ListToolsResult", &tools);
    let created = client.result("tools/call", json!({ "name": "slow", "task": { "ttl": 60_000 } }));
    check("CreateTaskResult", &created);
    let task = json!({ "taskId": created["task"]["taskId"] });
    tokio::time::sleep(Duration::from_secs(2)).await;
    let state = client.result("tasks/get", task.clone());
    assert_eq!(state["statusMessage"], "1/2");
    check("GetTaskResult", &state);
    check("ListTasksResult", &client.result("tasks/list", json!({})));
    check("TaskStatusNotification", &client.expect_message("notifications/tasks/status"));
    let waiting = client.start("tasks/result", task);
    tokio::time::sleep(Duration::from_secs(10)).await;
    client.run();
    let result = client.response_to(waiting)["result"].take();
    check("GetTaskPayloadResult", &result);
    check("CallToolResult", &result);
    let created = client.result("tools/call", json!({ "name": "slow", "task": {} }));
    let cancelled = client.result("tasks/cancel", json!({ "taskId": created["task"]["taskId"] }));
    check("CancelTaskResult", &cancelled);
}

/// Cut down to a revision, a value with members of all revisions validates there.
#[test]
fn what_is_restricted_is_valid() {
    let model = Model::read();
    let mut checked = 0;
    for revision in Revision::ALL {
        let schema = Schema::read(&model, revision.as_str());
        for (name, codec) in REGISTRY {
            if !model.facts(name).is_some_and(|facts| facts.has("revisions", revision.as_str())) {
                continue;
            }
            let Some(validator) = schema.definition(name) else { continue };
            for seed in 0..ROUNDS {
                let value = Sampler::new(&model, Scope::Anything(revision.as_str()), seed).value(name);
                let Some(outcome) = codec.restrict(&value.to_string(), revision) else { continue };
                let (encoded, restriction) = outcome.unwrap_or_else(|fault| panic!("{name}, seed {seed}: {fault}"));
                if restriction.may_be_sent() {
                    assert_valid(&validator, &encoded, &format!("{name} in {revision}, seed {seed}"));
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 4_000, "{checked}");
}

/// Every message of every method, in every revision and direction, validates as a whole.
// covers: CG-3
#[test]
fn whole_messages_are_valid() {
    let model = Model::read();
    let mut checked = 0;
    for revision in Revision::ALL {
        let schema = Schema::read(&model, revision.as_str());
        for (method, facts) in model.methods() {
            if !facts.has("client", revision.as_str()) && !facts.has("server", revision.as_str()) {
                continue;
            }
            let message = schema.message(method).unwrap_or_else(|| panic!("{revision} defines {method}"));
            let envelope = schema.definition(envelope_name(facts.text("kind"))).expect("an envelope");
            for seed in 0..ROUNDS {
                let params = encoded(&model, facts.text("params"), revision, seed);
                let mut line = Vec::new();
                let (id, name) = (RequestId::from(i64::try_from(seed).unwrap_or(0)), Method::from(method));
                match facts.text("kind") {
                    "request" => write_request(&mut line, &id, &name, Some(&params)),
                    _ => write_notification(&mut line, &name, Some(&params)),
                }
                .expect("written");
                let line = String::from_utf8(line).expect("UTF-8");
                assert_valid(&message, &line, &format!("{method} in {revision}, seed {seed}"));
                assert_valid(&envelope, &line, &format!("envelope of {method} in {revision}, seed {seed}"));
                Message::parse(line.as_bytes(), &Limits::default()).expect("what was written can be read");
                checked += 1;
            }
        }
        for seed in 0..ROUNDS {
            let mut line = Vec::new();
            write_result(&mut line, &RequestId::from("r"), &encoded(&model, "EmptyResult", revision, seed))
                .expect("written");
            assert_valid(&schema.first(&["JSONRPCResultResponse", "JSONRPCResponse"]), &text(&line), "a result");
        }
        let mut line = Vec::new();
        let error = ErrorObject::invalid_params("no such tool").data(&json!([1, null])).expect("data");
        write_error(&mut line, Some(&RequestId::from(7_i64)), &error, UnknownId::Omit).expect("written");
        assert_valid(&schema.first(&["JSONRPCErrorResponse", "JSONRPCError"]), &text(&line), "an error");
    }
    assert!(checked > 4_000, "{checked}");
}

/// The official examples decode into their type, and encode to the same JSON.
// covers: CG-26
#[test]
fn official_examples_survive() {
    let model = Model::read();
    let examples = schema_dir().join("2026-07-28/examples");
    let mut count = 0;
    for folder in fs::read_dir(&examples).expect("the folder of examples").flatten() {
        let name = folder.file_name().into_string().expect("a name");
        for file in fs::read_dir(folder.path()).expect("examples").flatten() {
            let text = fs::read_to_string(file.path()).expect("an example");
            let example: Value = serde_json::from_str(&text).expect("JSON");
            let again = re_encode(&model, &name, &text, &example);
            assert_eq!(again, example, "{}", file.path().display());
            count += 1;
        }
    }
    assert_eq!(count, 129);
}

/// The tasks extension is stated by hand; its own schema judges it.
// covers: CG-25
#[test]
fn task_extension_is_valid() {
    let schema = Schema::read_file("ext-tasks", &[]);
    let task = |status| Task::new("t-1", status, "2026-08-01T00:00:00Z", "2026-08-01T00:00:00Z", None);
    let result = RawObject::parse(r#"{"content":[],"resultType":"complete"}"#).expect("an object");
    let questions: InputRequests = serde_json::from_str(r#"{"q":{"method":"roots/list"}}"#).expect("questions");
    let cancelled = Task::new("t-2", TaskStatus::Cancelled, "a", "b", Some(5)).poll_interval_ms(1);
    let details = [
        DetailedTask::from(task(TaskStatus::Working)),
        DetailedTask::from(cancelled),
        DetailedTask::from(task(TaskStatus::Completed)).result(result),
        DetailedTask::from(task(TaskStatus::Failed)).error(ErrorObject::internal_error("broken")),
        DetailedTask::from(task(TaskStatus::InputRequired)).input_requests(questions),
    ];
    for detail in details {
        assert_both(&schema, "DetailedTask", &detail);
        assert_both(&schema, "TaskStatusNotificationParams", &TaskNotificationParams::from(detail.clone()));
        assert_both(&schema, "GetTaskResult", &GetTaskResult::from(detail).result_type(ResultType::COMPLETE));
    }
    assert_both(&schema, "CreateTaskResult", &CreateTaskResult::from(task(TaskStatus::Working).status_message("m")));
    assert_both(&schema, "UpdateTaskResult", &EmptyResult::default().result_type(ResultType::COMPLETE));
    let request =
        |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let get = serde_json::to_value(TaskRequestParams::new("t-1")).expect("params");
    assert_valid(&schema.required("GetTaskRequest"), &request("tasks/get", get.clone()).to_string(), "tasks/get");
    assert_valid(&schema.required("CancelTaskRequest"), &request("tasks/cancel", get).to_string(), "tasks/cancel");
    let answers = InputResponses::from([("q", RawObject::parse(r#"{"action":"decline"}"#).expect("JSON"))]);
    let update = serde_json::to_value(UpdateTaskRequestParams::new("t-1", answers)).expect("params");
    assert_valid(&schema.required("UpdateTaskRequest"), &request("tasks/update", update).to_string(), "tasks/update");
}

fn assert_both<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(schema: &Schema, name: &str, value: &T) {
    let text = serde_json::to_string(value).expect("JSON");
    assert_valid(&schema.required(name), &text, name);
    assert_eq!(&serde_json::from_str::<T>(&text).expect("decodes"), value);
}

/// Reads an example as the type that its folder names, and writes it again.
fn re_encode(model: &Model, name: &str, text: &str, example: &Value) -> Value {
    if let Some(codec) = codec(name) {
        return value(&codec.round_trip(text).unwrap_or_else(|fault| panic!("{name}: {fault}")));
    }
    if example.get("code").is_some() {
        let error: ErrorObject = serde_json::from_str(text).expect("an error object");
        return serde_json::to_value(error).expect("JSON");
    }
    let mut line = Vec::new();
    match Message::parse(text.as_bytes(), &Limits::default()).unwrap_or_else(|fault| panic!("{name}: {fault}")) {
        Message::Request(request) => {
            let params = request.params.map(|params| typed(model, request.method.as_str(), "params", params.as_str()));
            write_request(&mut line, &request.id, &request.method, params.as_ref()).expect("written");
        }
        Message::Notification(notification) => {
            let params =
                notification.params.map(|params| typed(model, notification.method.as_str(), "params", params.as_str()));
            write_notification(&mut line, &notification.method, params.as_ref()).expect("written");
        }
        Message::Response(response) => match response.outcome {
            Ok(result) => {
                let result_type = name.strip_suffix("Response").expect("a response is named after its result");
                let codec = codec(result_type).unwrap_or_else(|| panic!("{result_type} is a type"));
                let result = RawJson::parse(&codec.round_trip(result.as_str()).expect("survives")).expect("JSON");
                write_result(&mut line, &response.id.expect("an id"), &result).expect("written");
            }
            Err(mut error) => {
                if let Some(data) = &error.data {
                    error.data = Some(match name {
                        "UnsupportedProtocolVersionError" => again::<UnsupportedProtocolVersionData>(data),
                        "MissingRequiredClientCapabilityError" => again::<MissingRequiredClientCapabilityData>(data),
                        _ => data.clone(),
                    });
                }
                write_error(&mut line, response.id.as_ref(), &error, UnknownId::Omit).expect("written");
            }
        },
    }
    value(&self::text(&line))
}

fn again<T: DeserializeOwned + Serialize>(data: &RawJson) -> RawJson {
    RawJson::new(&data.decode::<Value>().and_then(serde_json::from_value::<T>).expect("typed data")).expect("JSON")
}

fn typed(model: &Model, method: &str, part: &str, text: &str) -> RawJson {
    let (_, facts) = model.methods().find(|(name, _)| *name == method).expect("a core method");
    let codec = codec(facts.text(part)).expect("a type");
    RawJson::parse(&codec.round_trip(text).unwrap_or_else(|fault| panic!("{method}: {fault}"))).expect("JSON")
}

fn encoded(model: &Model, name: &str, revision: Revision, seed: u64) -> RawJson {
    let sample = Sampler::new(model, Scope::Exactly(revision.as_str()), seed).value(name);
    let encoded = codec(name).expect("a type").round_trip(&sample.to_string()).expect("survives");
    RawJson::parse(&encoded).expect("JSON")
}

fn envelope_name(kind: &str) -> &'static str {
    if kind == "request" { "JSONRPCRequest" } else { "JSONRPCNotification" }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn text(line: &[u8]) -> String {
    String::from_utf8(line.to_vec()).expect("UTF-8")
}

fn assert_valid(validator: &Validator, text: &str, what: &str) {
    if let Err(fault) = validator.validate(&value(text)) {
        panic!("{what}: {fault} at {}\n{text}", fault.instance_path());
    }
}

fn schema_dir() -> PathBuf {
    let dir = std::env::var_os("MCP_SCHEMA_DIR").expect("MCP_SCHEMA_DIR names the folder of the official schemas");
    let dir = PathBuf::from(dir);
    assert!(dir.is_dir(), "MCP_SCHEMA_DIR: {} is not a folder", dir.display());
    dir
}

/// One official file, with its known faults mended.
struct Schema {
    file: Value,
    root: &'static str,
    /// Definitions that the file has under another name.
    renamed: BTreeMap<&'static str, &'static str>,
}

impl Schema {
    fn read(model: &Model, revision: &str) -> Self {
        let errata: Vec<(&str, &Value, &Value)> = model
            .errata()
            .filter(|erratum| erratum.has("revisions", revision))
            .map(|erratum| {
                (erratum.text("at"), erratum.get("says").expect("says"), erratum.get("means").expect("means"))
            })
            .collect();
        Self::read_file(revision, &errata)
    }

    fn read_file(folder: &str, errata: &[(&str, &Value, &Value)]) -> Self {
        let path = schema_dir().join(folder).join("schema.json");
        let text = fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        let mut file: Value = serde_json::from_str(&text).expect("a schema");
        let root = if file.get("$defs").is_some() { "$defs" } else { "definitions" };
        for (at, says, means) in errata {
            let place = file.pointer_mut(&format!("/{root}{at}")).expect("an erratum points somewhere");
            assert_eq!(&place, says, "an erratum still holds");
            *place = (*means).clone();
        }
        let mut renamed = BTreeMap::new();
        if file[root].get("ResourceReference").is_some() {
            renamed.insert("ResourceTemplateReference", "ResourceReference");
        }
        if file[root].get("LegacyTitledEnumSchema").is_none() {
            renamed.insert("LegacyTitledEnumSchema", "EnumSchema");
        }
        Self { file, root, renamed }
    }

    /// The validator of a definition, if the file has it.
    fn definition(&self, name: &str) -> Option<Validator> {
        let name = self.renamed.get(name).copied().unwrap_or(name);
        self.file[self.root].get(name)?;
        let mut schema = self.file.clone();
        schema["allOf"] = json!([{ "$ref": format!("#/{}/{name}", self.root) }]);
        let validator = jsonschema::options().should_validate_formats(false).build(&schema);
        Some(validator.unwrap_or_else(|fault| panic!("{name}: {fault}")))
    }

    fn required(&self, name: &str) -> Validator {
        self.definition(name).unwrap_or_else(|| panic!("{name} is defined"))
    }

    fn first(&self, names: &[&str]) -> Validator {
        names.iter().find_map(|name| self.definition(name)).expect("one of the names is defined")
    }

    /// The validator of the message that a method travels in.
    fn message(&self, method: &str) -> Option<Validator> {
        let definitions = self.file[self.root].as_object()?;
        let is_wrapper =
            |name: &str| name.ends_with("Request") || (name.ends_with("Notification") && !name.starts_with("Client"));
        let (name, _) = definitions.iter().find(|(name, node)| {
            is_wrapper(name) && node.pointer("/properties/method/const") == Some(&json!(method))
        })?;
        self.definition(name)
    }
}
