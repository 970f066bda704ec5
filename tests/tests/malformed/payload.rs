//! Payloads that do not fit their types.

use mcp_types::jsonrpc::{Limits, Payload};
use mcp_types::{
    CallToolRequestParams, CallToolResult, CancelledNotificationParams, CompleteRequestParams, ElicitRequestParams,
    ElicitResult, GetPromptRequestParams, InitializeRequestParams, LoggingMessageNotificationParams,
    ProgressNotificationParams, ReadResourceRequestParams, ReadResourceResult, SetLevelRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::json;

/// A payload, the member to blame, and the parts of what is said that name the member and what was expected.
type Row<'a> = (&'a str, &'a str, &'a [&'a str]);

fn refuse_all<T: DeserializeOwned + std::fmt::Debug>(rows: &[Row<'_>]) {
    let wrong: Vec<_> = rows.iter().filter_map(wrong_about::<T>).collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

fn wrong_about<T: DeserializeOwned + std::fmt::Debug>((text, member, says): &Row<'_>) -> Option<String> {
    let payload = Payload::parse(text, &Limits::default()).expect("an object");
    let invalid = match payload.decode::<T>() {
        Err(invalid) => invalid,
        Ok(value) => return Some(format!("{text}: accepted as {value:?}")),
    };
    let said = invalid.to_string();
    let as_expected = invalid.member() == Some(*member) && says.iter().all(|part| said.contains(part));
    (!as_expected).then(|| format!("{text}: {:?} {said:?}, expected {member:?} {says:?}", invalid.member()))
}

#[test]
fn parameters_of_calls() {
    refuse_all::<CallToolRequestParams>(&[
        ("{}", "name", &["missing", "`name`"]),
        (r#"{"arguments":{}}"#, "name", &["missing", "`name`"]),
        (r#"{"name":5}"#, "name", &["`name`: ", "integer `5`, expected a string"]),
        (r#"{"name":null}"#, "name", &["`name`: ", "null, expected a string"]),
        (r#"{"name":["a"]}"#, "name", &["`name`: ", "expected a string"]),
        (r#"{"n\u0061me":{}}"#, "name", &["`name`: ", "expected a string"]),
        (r#"{"name":"a","arguments":[]}"#, "arguments", &["`arguments`: expected an object, found an array"]),
        (r#"{"name":"a","arguments":"{}"}"#, "arguments", &["`arguments`: expected an object, found a string"]),
        (r#"{"name":"a","arguments":1e400}"#, "arguments", &["`arguments`: expected an object, found a number"]),
        (r#"{"name":"a","requestState":{}}"#, "requestState", &["`requestState`: ", "expected a string"]),
        (r#"{"name":"a","inputResponses":[]}"#, "inputResponses", &["`inputResponses`: ", "expected an object"]),
        (r#"{"name":"a","inputResponses":{"k":5}}"#, "inputResponses", &["`inputResponses`: expected an object"]),
        (r#"{"name":"a","task":{"ttl":"1"}}"#, "task", &["`task.ttl`: ", "string \"1\", expected an integer"]),
    ]);
    refuse_all::<ReadResourceRequestParams>(&[
        ("{}", "uri", &["missing", "`uri`"]),
        (r#"{"URI":"a:b"}"#, "uri", &["missing", "`uri`"]),
        (r#"{"uri":5}"#, "uri", &["`uri`: ", "integer `5`, expected a string"]),
        (r#"{"uri":false}"#, "uri", &["`uri`: ", "boolean `false`, expected a string"]),
    ]);
    refuse_all::<GetPromptRequestParams>(&[
        ("{}", "name", &["missing", "`name`"]),
        (r#"{"name":"a","arguments":[]}"#, "arguments", &["`arguments`: ", "expected an object"]),
        (r#"{"name":"a","arguments":{"x":5}}"#, "arguments", &["`arguments`: ", "integer `5`, expected a string"]),
        (r#"{"name":"a","arguments":{"x":"1","\u0078":"2"}}"#, "arguments", &["`arguments`: duplicate member `x`"]),
    ]);
    refuse_all::<InitializeRequestParams>(&[
        (r#"{"capabilities":{},"clientInfo":{"name":"a","version":"1"}}"#, "protocolVersion", &["missing"]),
        (r#"{"protocolVersion":20250618}"#, "protocolVersion", &["`protocolVersion`: ", "expected a string"]),
        (r#"{"protocolVersion":"2025-06-18"}"#, "capabilities", &["missing", "`capabilities`"]),
        (r#"{"protocolVersion":"2025-06-18","capabilities":5}"#, "capabilities", &["`capabilities`: ", "expected"]),
        (r#"{"protocolVersion":"1","capabilities":{},"clientInfo":{}}"#, "clientInfo", &["`clientInfo`: ", "`name`"]),
    ]);
}

#[test]
fn metadata() {
    refuse_all::<CallToolRequestParams>(&[
        (r#"{"name":"a","_meta":5}"#, "_meta", &["`_meta`: ", "integer `5`, expected"]),
        (r#"{"name":"a","_meta":[]}"#, "_meta", &["`_meta`: ", "expected"]),
        (
            r#"{"name":"a","_meta":{"progressToken":true}}"#,
            "_meta",
            &["`_meta.progressToken`: ", "expected a string or an integer"],
        ),
        (
            r#"{"name":"a","_meta":{"progressToken":1.5}}"#,
            "_meta",
            &["`_meta.progressToken`: ", "`1.5`, expected a string or an integer"],
        ),
        (r#"{"name":"a","_meta":{"progressToken":1,"progressToken":1}}"#, "_meta", &["duplicate", "`progressToken`"]),
        (
            r#"{"name":"a","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"x"}}}"#,
            "_meta",
            &["`_meta.io.modelcontextprotocol/clientInfo`: missing", "`version`"],
        ),
        (
            r#"{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":5}}"#,
            "_meta",
            &["`_meta.io.modelcontextprotocol/protocolVersion`: ", "integer `5`, expected a string"],
        ),
        (
            r#"{"name":"a","_meta":{"io.modelcontextprotocol/logLevel":"loud"}}"#,
            "_meta",
            &["`_meta.io.modelcontextprotocol/logLevel`: ", "`loud`, expected", "`debug`"],
        ),
    ]);
}

#[test]
fn completion() {
    refuse_all::<CompleteRequestParams>(&[
        (r#"{"ref":{"type":"ref/prompt","name":"p"}}"#, "argument", &["missing", "`argument`"]),
        (r#"{"argument":{"name":"a","value":"b"}}"#, "ref", &["missing", "`ref`"]),
        (r#"{"argument":5}"#, "argument", &["`argument`: ", "integer `5`, expected"]),
        (r#"{"argument":{"name":"a"}}"#, "argument", &["`argument`: ", "missing", "`value`"]),
        (r#"{"argument":{"name":"a","value":5}}"#, "argument", &["`argument.value`: ", "expected a string"]),
        (r#"{"ref":5}"#, "ref", &["`ref`: ", "expected an object with a `type`"]),
        (r#"{"ref":["ref/prompt","p"]}"#, "ref", &["`ref`: ", "expected an object with a `type`"]),
        (r#"{"ref":{"name":"p"}}"#, "ref", &["`ref`: ", "missing", "`type`"]),
        (r#"{"ref":{"type":7}}"#, "ref", &["`ref.type`: ", "expected a string"]),
        (r#"{"ref":{"type":"ref/prompt"}}"#, "ref", &["`ref`: ", "missing", "`name`"]),
        (r#"{"ref":{"name":"p","type":"ref/resource"}}"#, "ref", &["`ref`: ", "missing", "`uri`"]),
        (r#"{"context":{"arguments":{"a":5}}}"#, "context", &["`context.arguments`: ", "expected a string"]),
    ]);
}

#[test]
fn logging() {
    refuse_all::<SetLevelRequestParams>(&[
        ("{}", "level", &["missing", "`level`"]),
        (r#"{"level":"loud"}"#, "level", &["`level`: ", "`loud`, expected `debug`, `info`"]),
        (r#"{"level":"INFO"}"#, "level", &["`level`: ", "`INFO`, expected `debug`, `info`"]),
        (r#"{"level":""}"#, "level", &["`level`: ", "expected `debug`, `info`"]),
    ]);
    refuse_all::<LoggingMessageNotificationParams>(&[
        (r#"{"level":"info"}"#, "data", &["missing", "`data`"]),
        (r#"{"data":null}"#, "level", &["missing", "`level`"]),
        (r#"{"data":null,"level":"info","logger":5}"#, "logger", &["`logger`: ", "expected a string"]),
    ]);
}

/// A level is a string; nothing else stands for one, and the answer says so.
#[test]
fn levels_of_another_kind() {
    refuse_all::<SetLevelRequestParams>(&[
        (r#"{"level":5}"#, "level", &["`level`: ", "integer `5`, expected", "string"]),
        (r#"{"level":null}"#, "level", &["`level`: ", "null, expected", "string"]),
        (r#"{"level":["info"]}"#, "level", &["`level`: ", "expected", "string"]),
        (r#"{"level":{"info":null}}"#, "level", &["`level`: ", "expected", "string"]),
    ]);
    refuse_all::<ElicitResult>(&[
        (r#"{"action":5}"#, "action", &["`action`: ", "expected", "string"]),
        (r#"{"action":{"accept":null}}"#, "action", &["`action`: ", "expected", "string"]),
    ]);
}

#[test]
fn elicitation() {
    let schema = |field: &str| {
        format!(r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{{"a":{field}}}}}}}"#)
    };
    refuse_all::<ElicitRequestParams>(&[
        ("{}", "message", &["missing", "`message`"]),
        (r#"{"message":5}"#, "message", &["`message`: ", "expected a string"]),
        (r#"{"message":"m"}"#, "requestedSchema", &["missing", "`requestedSchema`"]),
        (r#"{"message":"m","mode":"form"}"#, "requestedSchema", &["missing", "`requestedSchema`"]),
        (r#"{"message":"m","mode":"url"}"#, "url", &["missing", "`url`"]),
        (r#"{"message":"m","mode":"url","url":5}"#, "url", &["`url`: ", "expected a string"]),
        (r#"{"message":"m","mode":5}"#, "mode", &["`mode`: ", "integer `5`, expected a string"]),
        (r#"{"message":"m","requestedSchema":5}"#, "requestedSchema", &["`requestedSchema`: ", "expected"]),
        (r#"{"message":"m","requestedSchema":{"type":"object"}}"#, "requestedSchema", &["missing", "`properties`"]),
        (
            r#"{"message":"m","requestedSchema":{"type":"array","properties":{}}}"#,
            "requestedSchema",
            &["`requestedSchema.type`: ", "\"array\", expected the string \"object\""],
        ),
        (&schema("5"), "requestedSchema", &["`requestedSchema.properties`: ", "integer `5`, expected an object"]),
        (&schema("{}"), "requestedSchema", &["`requestedSchema.properties`: ", "missing", "`type`"]),
        (&schema(r#"{"type":"date"}"#), "requestedSchema", &["\"date\", expected `type` to be `string`, `number`"]),
        (&schema(r#"{"type":"string","minLength":"1"}"#), "requestedSchema", &["string \"1\", expected"]),
        (
            &schema(r#"{"type":"boolean","default":"x"}"#),
            "requestedSchema",
            &["`requestedSchema.properties.default` must be a boolean"],
        ),
    ]);
    refuse_all::<ElicitResult>(&[
        ("{}", "action", &["missing", "`action`"]),
        (r#"{"action":"maybe"}"#, "action", &["`action`: ", "`maybe`, expected `accept`"]),
        (r#"{"action":"accept","content":[]}"#, "content", &["`content`: ", "expected an object"]),
        (r#"{"action":"accept","content":{"a":null}}"#, "content", &["`content`: ", "expected a string, a number"]),
        (r#"{"action":"accept","content":{"a":[1]}}"#, "content", &["`content`: ", "expected a string"]),
    ]);
}

/// The member is known, so it can be asked for.
#[test]
fn an_unknown_mode() {
    refuse_all::<ElicitRequestParams>(&[(
        r#"{"message":"m","mode":"voice"}"#,
        "mode",
        &["`mode`: unknown value `voice`, expected `form` or `url`"],
    )]);
}

#[test]
fn notifications() {
    const ID: &str = "expected a string or an integer";
    refuse_all::<CancelledNotificationParams>(&[
        (r#"{"requestId":1.5}"#, "requestId", &["`requestId`: ", "`1.5`", ID]),
        (r#"{"requestId":true}"#, "requestId", &["`requestId`: ", "boolean `true`", ID]),
        (r#"{"requestId":{}}"#, "requestId", &["`requestId`: ", ID]),
        (r#"{"requestId":[1]}"#, "requestId", &["`requestId`: ", ID]),
        (r#"{"requestId":9223372036854775808}"#, "requestId", &["`requestId`: ", ID]),
        (r#"{"requestId":1,"reason":5}"#, "reason", &["`reason`: ", "expected a string"]),
    ]);
    refuse_all::<ProgressNotificationParams>(&[
        (r#"{"progress":1}"#, "progressToken", &["missing", "`progressToken`"]),
        (r#"{"progressToken":1}"#, "progress", &["missing", "`progress`"]),
        (r#"{"progressToken":null,"progress":1}"#, "progressToken", &["`progressToken`: ", ID]),
        (r#"{"progressToken":1,"progress":"1"}"#, "progress", &["`progress`: ", "string \"1\", expected", "number"]),
        (r#"{"progressToken":1,"progress":1e400}"#, "progress", &["`progress`: number out of range"]),
        (r#"{"progressToken":1,"progress":1,"total":[]}"#, "total", &["`total`: ", "expected", "number"]),
    ]);
}

#[test]
fn content_of_results() {
    let content = |block: &str| format!(r#"{{"content":[{{"type":"text","text":"a"}},{block}]}}"#);
    refuse_all::<CallToolResult>(&[
        ("{}", "content", &["missing", "`content`"]),
        (r#"{"content":5}"#, "content", &["`content`: ", "integer `5`, expected"]),
        (r#"{"content":{"type":"text","text":"a"}}"#, "content", &["`content`: ", "expected"]),
        (&content("5"), "content", &["`content`: ", "expected an object with a `type`"]),
        (&content("[]"), "content", &["`content`: ", "expected an object with a `type`"]),
        (&content("{}"), "content", &["`content`: ", "missing", "`type`"]),
        (&content(r#"{"text":"a"}"#), "content", &["`content`: ", "missing", "`type`"]),
        (&content(r#"{"type":null}"#), "content", &["`content.type`: ", "null, expected a string"]),
        (&content(r#"{"type":"text"}"#), "content", &["`content`: ", "missing", "`text`"]),
        (&content(r#"{"type":"text","text":5}"#), "content", &["`content.text`: ", "integer `5`, expected a string"]),
        (&content(r#"{"text":5,"type":"text"}"#), "content", &["`content.text`: ", "integer `5`, expected a string"]),
        (&content(r#"{"type":"text","text":"a","text":"b"}"#), "content", &["`content`: duplicate", "`text`"]),
        (&content(r#"{"type":"image","data":"AA=="}"#), "content", &["`content`: ", "missing", "`mimeType`"]),
        (&content(r#"{"type":"audio","mimeType":"audio/wav"}"#), "content", &["`content`: ", "missing", "`data`"]),
        (&content(r#"{"type":"resource_link","uri":"a:b"}"#), "content", &["`content`: ", "missing", "`name`"]),
        (&content(r#"{"type":"resource","resource":{"uri":"a:b"}}"#), "content", &["missing", "`text` or `blob`"]),
        (
            &content(r#"{"type":"resource","resource":{"uri":"a:b","text":"","blob":""}}"#),
            "content",
            &["`text` or `blob`, not both"],
        ),
        (r#"{"content":[],"isError":"yes"}"#, "isError", &["`isError`: ", "string \"yes\", expected a boolean"]),
        (r#"{"content":[],"isError":1}"#, "isError", &["`isError`: ", "integer `1`, expected a boolean"]),
        (r#"{"content":[],"resultType":5}"#, "resultType", &["`resultType`: ", "expected a string"]),
        (r#"{"content":[],"_meta":"m"}"#, "_meta", &["`_meta`: ", "string \"m\", expected"]),
    ]);
    refuse_all::<ReadResourceResult>(&[
        ("{}", "contents", &["missing", "`contents`"]),
        (r#"{"contents":{}}"#, "contents", &["`contents`: ", "expected"]),
        (r#"{"contents":[{"text":""}]}"#, "contents", &["`contents`: ", "missing", "`uri`"]),
        (r#"{"contents":[{"uri":"a:b","blob":5}]}"#, "contents", &["`contents.blob`: ", "expected a string"]),
    ]);
}

/// Two readers must not see two kinds of content in one block.
#[test]
fn the_type_of_content_appears_once() {
    refuse_all::<CallToolResult>(&[
        (r#"{"content":[{"type":"text","text":"a","type":"text"}]}"#, "content", &["duplicate", "`type`"]),
        (r#"{"content":[{"type":"text","text":"a","type":"image"}]}"#, "content", &["duplicate", "`type`"]),
        (r#"{"content":[{"type":"chart","text":"a","\u0074ype":"text"}]}"#, "content", &["duplicate", "`type`"]),
    ]);
    refuse_all::<CompleteRequestParams>(&[(
        r#"{"ref":{"type":"ref/prompt","name":"p","type":"ref/resource"}}"#,
        "ref",
        &["duplicate", "`type`"],
    )]);
}

/// Where the protocol wants an object, the members in a list are no substitute.
#[test]
fn a_list_is_no_object() {
    refuse_all::<CompleteRequestParams>(&[
        (r#"{"argument":["a","b"]}"#, "argument", &["`argument`: ", "expected"]),
        (r#"{"context":[{}]}"#, "context", &["`context`: ", "expected"]),
    ]);
    refuse_all::<CallToolRequestParams>(&[
        (r#"{"name":"a","task":[5]}"#, "task", &["`task`: ", "expected"]),
        (
            r#"{"name":"a","_meta":{"io.modelcontextprotocol/clientInfo":["a","1",null,null,null,null]}}"#,
            "_meta",
            &["`_meta.io.modelcontextprotocol/clientInfo`: ", "expected an object"],
        ),
    ]);
    refuse_all::<InitializeRequestParams>(&[(
        r#"{"protocolVersion":"1","capabilities":{},"clientInfo":["a","1",null,null,null,null]}"#,
        "clientInfo",
        &["`clientInfo`: ", "expected"],
    )]);
    refuse_all::<ReadResourceResult>(&[(
        r#"{"contents":[["a:b","text",null,null,null]]}"#,
        "contents",
        &["`contents`: ", "expected"],
    )]);
}

/// `serde_json` marks raw values by a name of its own. A peer has no use for it: read as a mark, it would turn the text of a
/// string into JSON, unseen by whoever checked the message and as deep as it likes.
// covers: SEC-2
#[test]
fn sec_2_marks_of_raw_values_are_refused() {
    for hidden in ["[1,2]", "}{"] {
        let object = json!({ "$serde_json::private::RawValue": hidden }).to_string();
        for text in [
            format!(r#"{{"name":"a","_meta":{{"x":{object}}}}}"#),
            format!(r#"{{"content":[{{"x":{object},"type":"chart"}}],"x":1}}"#),
            object,
        ] {
            let refused = Payload::parse(&text, &Limits::default()).expect_err("a mark").to_string();
            assert!(refused.starts_with("the name of a member is reserved"), "{refused}");
        }
    }
}
