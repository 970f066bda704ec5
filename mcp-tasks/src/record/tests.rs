//! Each transition, and the encoding.

use mcp_mrtr::Round;
use mcp_types::{ElicitRequestFormParams, ListRootsRequest, OrderedMap, RequestedSchema, Revision};

use super::*;

const TTL: Duration = Duration::from_secs(60);

fn record() -> TaskRecord {
    let params = RawObject::parse(r#"{"name":"render","arguments":{"scene":"ü 🦀"}}"#).unwrap();
    let call = TaskCall::new(Revision::V2026_07_28, params);
    TaskRecord::new(TaskId::from_bytes([7; 32]), "render", call, 1000, TTL)
}

fn form(message: &str) -> InputRequest {
    ElicitRequestFormParams::new(message, RequestedSchema::new(OrderedMap::new())).into()
}

fn questions(questions: &[(&str, &str)]) -> Vec<(String, InputRequest)> {
    questions.iter().map(|(key, message)| ((*key).to_owned(), form(message))).collect()
}

fn response(text: &str) -> RawObject {
    RawObject::parse(&format!(r#"{{"action":"accept","content":{{"a":"{text}"}}}}"#)).unwrap()
}

fn responses(texts: &[(&str, &str)]) -> InputResponses {
    texts.iter().map(|(key, text)| ((*key).to_owned(), response(text))).collect()
}

fn json(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

/// The wire keys of the pending input requests, and their messages.
fn open(record: &TaskRecord) -> Vec<(String, InputRequest)> {
    record.journal().input_requests().iter().map(|(key, request)| (key.to_owned(), request.clone())).collect()
}

/// The record as another instance reads it.
fn reread(record: &TaskRecord) -> TaskRecord {
    TaskRecord::decode(record.id, &record.encode(&TaskLimits::default()).unwrap()).unwrap()
}

fn error() -> ErrorObject {
    ErrorObject::internal_error("it broke")
}

// covers: B-84
#[test]
fn tasks_begin_working() {
    let record = record();
    assert_eq!((record.status(), record.is_finished(), record.message()), (TaskStatus::Working, false, None));
    assert_eq!((record.created, record.updated(), record.expires), (1000, 1000, 61_000));
    assert_eq!(record.time_to_live(), TTL);
    assert_eq!((record.outcome(), record.journal()), (None, &TaskJournal::default()));
    let forever = TaskRecord::new(record.id, "a", record.call, 1000, Duration::MAX);
    assert_eq!(forever.expires, u64::MAX);
}

type Transition = fn(&mut TaskRecord) -> Result<(), TransitionError>;

/// Every transition, by its name.
const TRANSITIONS: [(&str, Transition); 8] = [
    ("set_message", |record| record.set_message(2000, "half")),
    ("complete_step", |record| record.complete_step(2000, "step", json("1"))),
    ("ask", |record| record.request_input(2000, "key", form("A?")).map(drop)),
    ("park", |record| record.park(2000, questions(&[("key", "A?")]), None).map(drop)),
    ("answer", |record| record.respond(2000, &responses(&[("open", "1")])).map(drop)),
    ("complete", |record| record.complete(2000, RawObject::empty())),
    ("fail", |record| record.fail(2000, TaskOutcome::Error(error()))),
    ("cancel", |record| record.cancel(2000)),
];

/// A final state never changes, whatever happens.
// covers: B-84, TK-17
#[test]
fn final_states_never_change() {
    for (end, end_name) in
        [(TRANSITIONS[5].1, "completed"), (TRANSITIONS[6].1, "failed"), (TRANSITIONS[7].1, "cancelled")]
    {
        let mut record = record();
        record.request_input(1500, "open", form("Open?")).unwrap();
        end(&mut record).unwrap();
        assert_eq!((record.status().as_str(), record.is_finished()), (end_name, true));
        for (name, transition) in TRANSITIONS {
            let before = record.clone();
            let refused = transition(&mut record);
            assert_eq!(refused, Err(TransitionError::Finished(before.status())), "{name} of a {end_name} task");
            assert_eq!(record, before, "{name} of a {end_name} task changes nothing");
        }
        assert_eq!(reread(&record), record);
    }
}

/// Each transition is allowed in both states that are not final, and notes its time.
#[test]
fn all_else_may_change() {
    for (name, transition) in TRANSITIONS {
        for is_waiting in [false, true] {
            let mut record = record();
            if is_waiting {
                record.request_input(1500, "open", form("Open?")).unwrap();
            }
            let before = record.clone();
            assert_eq!(transition(&mut record), Ok(()), "{name}");
            // Responses to nothing change nothing.
            let is_change = name != "answer" || is_waiting;
            assert_eq!((record.updated() == 2000, record != before), (is_change, is_change), "{name}");
            assert_eq!(reread(&record), record, "{name}");
        }
    }
}

/// Clocks of instances differ, and for a client time does not go back.
#[test]
fn time_does_not_go_back() {
    let mut record = record();
    record.set_message(5000, "a").unwrap();
    record.set_message(3000, "b").unwrap();
    assert_eq!((record.updated(), record.message()), (5000, Some("b")));
}

// covers: TK-14, TK-15, TK-16
#[test]
fn outcomes_are_kept() {
    let result = RawObject::parse(r#"{"content":[],"isError":true,"z":1.50}"#).unwrap();
    let mut completed = record();
    completed.set_message(1500, "half").unwrap();
    completed.complete(2000, result.clone()).unwrap();
    assert_eq!(completed.outcome(), Some(&TaskOutcome::Result(result.clone())));
    assert_eq!(completed.message(), Some("half"));
    let mut failed = record();
    failed.fail(2000, TaskOutcome::Error(error())).unwrap();
    assert_eq!((failed.outcome(), failed.message()), (Some(&TaskOutcome::Error(error())), Some("it broke")));
    // 2025-11-25 has failed tasks with a result.
    let mut refused = record();
    refused.fail(2000, TaskOutcome::Result(result.clone())).unwrap();
    assert_eq!((refused.status(), refused.outcome()), (TaskStatus::Failed, Some(&TaskOutcome::Result(result))));
    let mut cancelled = record();
    cancelled.cancel(2000).unwrap();
    assert_eq!((cancelled.status(), cancelled.outcome()), (TaskStatus::Cancelled, None));
    for record in [completed, failed, refused, cancelled] {
        assert_eq!(reread(&record), record);
    }
}

/// Of a finished task nothing is kept that only a run needs.
#[test]
fn finished_tasks_are_small() {
    let mut record = record();
    record.complete_step(1500, "step", json(&format!("\"{}\"", "x".repeat(10_000)))).unwrap();
    record.request_input(1500, "open", form("Open?")).unwrap();
    record.call.auth = Some(RawObject::parse(r#"{"scopes":["all"]}"#).unwrap());
    record.complete(2000, RawObject::empty()).unwrap();
    assert_eq!(record.journal(), &TaskJournal::default());
    assert_eq!((record.call.params.as_str(), &record.call.auth), ("{}", &None));
    assert_eq!(record.call.revision, Revision::V2026_07_28, "the revision is needed to answer");
    let bytes = record.encode(&TaskLimits::default()).unwrap().content.len();
    assert!(bytes < 300, "{bytes}");
}

/// A step has one result, which another run finds.
#[test]
fn steps_are_completed_once() {
    let mut record = record();
    assert_eq!(record.journal().step("charge"), None);
    record.complete_step(1500, "charge", json("7")).unwrap();
    let refused = record.complete_step(1600, "charge", json("8"));
    assert_eq!(refused, Err(TransitionError::StepExists("charge".to_owned())));
    record.complete_step(1700, "ship", json("null")).unwrap();
    let record = reread(&record);
    let steps: Vec<_> = record.journal().steps().map(|(key, result)| (key, result.as_str())).collect();
    assert_eq!(steps, [("charge", "7"), ("ship", "null")]);
    assert_eq!(record.journal().step("charge").map(RawJson::as_str), Some("7"));
}

/// The first input request of a key is known by that key, and all of a round become pending together.
// covers: TK-14
#[test]
fn runs_end_with_their_input_requests() {
    let mut record = record();
    assert_eq!(record.park(1500, questions(&[("a", "A?"), ("b", "B?")]), None), Ok(true));
    assert_eq!(record.status(), TaskStatus::InputRequired);
    assert_eq!(open(&record), questions(&[("a", "A?"), ("b", "B?")]));
    // The same request twice in one round is one.
    assert_eq!(record.park(1600, questions(&[("a", "A?"), ("a", "A?")]), None), Ok(true));
    assert_eq!(open(&record), questions(&[("a", "A?")]));
    let different = record.park(1700, questions(&[("a", "A?"), ("a", "other")]), None);
    assert_eq!(different, Err(TransitionError::DuplicateKey("a".to_owned())));
    assert_eq!(open(&record), questions(&[("a", "A?")]), "which changes nothing");
    assert_eq!(record.park(1800, Vec::new(), Some("state".to_owned())), Ok(false));
    assert_eq!((record.status(), record.journal().state()), (TaskStatus::Working, Some("state")));
}

/// Partial responses leave the rest open; unknown, repeated and withdrawn ones are ignored.
// covers: TK-25
#[test]
fn responses_are_recorded() {
    let mut record = record();
    record.park(1500, questions(&[("a", "A?"), ("b", "B?"), ("c", "C?")]), None).unwrap();
    let before = record.clone();
    assert_eq!(record.respond(1600, &responses(&[("x", "1"), ("A", "2")])), Ok(ResponseOutcome::Ignored));
    assert_eq!(record.respond(1600, &InputResponses::new()), Ok(ResponseOutcome::Ignored));
    assert_eq!(record, before, "what is ignored changes nothing");
    assert_eq!(record.respond(1700, &responses(&[("b", "2"), ("x", "1")])), Ok(ResponseOutcome::Partial));
    assert_eq!((record.status(), record.updated()), (TaskStatus::InputRequired, 1700));
    assert_eq!(open(&record), questions(&[("a", "A?"), ("c", "C?")]));
    assert_eq!(record.respond(1800, &responses(&[("b", "other")])), Ok(ResponseOutcome::Ignored), "it has a response");
    assert_eq!(record.journal().response("b", &form("B?")), Some(&response("2")), "which stays");
    assert_eq!(record.respond(1900, &responses(&[("a", "1"), ("c", "3")])), Ok(ResponseOutcome::Ready));
    assert_eq!((record.status(), record.journal().is_waiting()), (TaskStatus::Working, false));
    let record = reread(&record);
    for (key, message, text) in [("a", "A?", "1"), ("b", "B?", "2"), ("c", "C?", "3")] {
        assert_eq!(record.journal().response(key, &form(message)), Some(&response(text)));
        assert_eq!(record.journal().response(key, &form("another?")), None, "a response counts for its own request");
        assert_eq!(record.journal().response("x", &form(message)), None);
    }
    assert_eq!(record.journal().responses(), responses(&[("a", "1"), ("b", "2"), ("c", "3")]));
}

/// A key that a client has seen never stands for another request.
// covers: TK-21
#[test]
fn wire_keys_are_never_used_again() {
    let mut record = record();
    record.park(1500, questions(&[("a", "1?")]), None).unwrap();
    // Withdrawn before it has a response.
    record.park(1600, questions(&[("a", "2?")]), None).unwrap();
    assert_eq!(open(&record), questions(&[("a#2", "2?")]));
    assert_eq!(record.respond(1700, &responses(&[("a", "late")])), Ok(ResponseOutcome::Ignored));
    assert_eq!(record.respond(1700, &responses(&[("a#2", "second")])), Ok(ResponseOutcome::Ready));
    // The first request is made again: it was withdrawn, and the client may have seen that.
    record.park(1800, questions(&[("a", "1?")]), None).unwrap();
    assert_eq!(open(&record), questions(&[("a#3", "1?")]));
    record.respond(1900, &responses(&[("a#3", "third")])).unwrap();
    // A key of the handler that looks like one of ours.
    record.park(2000, questions(&[("a#2", "x?"), ("a", "4?")]), None).unwrap();
    assert_eq!(open(&record), questions(&[("a#2#2", "x?"), ("a#4", "4?")]));
    // What has a response is not asked again.
    assert_eq!(record.park(2100, questions(&[("a", "1?"), ("a#2", "x?")]), None), Ok(true));
    assert_eq!(open(&record), questions(&[("a#2#2", "x?")]));
    let record = reread(&record);
    assert_eq!(record.journal().response("a", &form("2?")), Some(&response("second")));
    assert_eq!(record.journal().response("a", &form("1?")), Some(&response("third")));
}

/// A handler that waits in memory makes one request after the other.
#[test]
fn requests_are_added_to_those_that_are_pending() {
    let mut record = record();
    assert_eq!(record.request_input(1500, "a", form("A?")).as_deref(), Ok("a"));
    assert_eq!(record.request_input(1500, "b", ListRootsRequest::default().into()).as_deref(), Ok("b"));
    assert_eq!(record.request_input(1500, "a", form("A?")).as_deref(), Ok("a"), "the same is one");
    assert_eq!(record.request_input(1500, "a", form("other?")).as_deref(), Ok("a#2"));
    assert_eq!((record.journal().open().count(), record.status()), (3, TaskStatus::InputRequired));
    assert_eq!(record.respond(1600, &responses(&[("a", "1"), ("b", "2")])), Ok(ResponseOutcome::Partial));
    assert_eq!(record.respond(1700, &responses(&[("a#2", "3")])), Ok(ResponseOutcome::Ready));
}

/// A call that becomes a task goes on with what its rounds have done.
#[test]
fn rounds_become_tasks() {
    let mut round = Round::new(mcp_mrtr::Journal::default(), responses(&[("a", "1")]));
    round.request_input("a", &form("A?")).unwrap();
    round.complete_step("charge", json("7"));
    let record = reread(&record().continuing(TaskJournal::from_rounds(&round.to_journal())));
    assert_eq!(record.journal().response("a", &form("A?")), Some(&response("1")));
    assert_eq!(record.journal().step("charge").map(RawJson::as_str), Some("7"));
    assert!(!record.journal().is_waiting());
}

#[test]
fn messages_are_short() {
    let mut record = record();
    record.set_message(1500, &"ü".repeat(10_000)).unwrap();
    assert_eq!(record.message().map(str::len), Some(1024));
    record.set_message(1500, &format!("x{}", "ü".repeat(10_000))).unwrap();
    assert_eq!(record.message().map(str::len), Some(1023), "characters are whole");
    record.fail(1600, TaskOutcome::Error(ErrorObject::internal_error("y".repeat(10_000)))).unwrap();
    assert_eq!(record.message().map(str::len), Some(1024));
}

#[test]
fn records_survive() {
    let mut full = record().owner(Some(TaskOwner([3; 32]))).poll_interval(Duration::from_millis(1500));
    full.call.principal = Some(mcp_kernel::server::Principal::new(Some("https://issuer.example"), "ann|🦀\n"));
    full.call.client_capabilities = serde_json::from_str(r#"{"elicitation":{},"x":{"y":1e400}}"#).unwrap();
    full.call.client_info = serde_json::from_str(r#"{"name":"ein Prüfer","version":"1"}"#).unwrap();
    full.call.auth = Some(RawObject::parse(r#"{"scopes":["a"]}"#).unwrap());
    full.call.session = Some("session".to_owned());
    full.complete_step(1500, "step", json("1e400")).unwrap();
    full.park(1600, questions(&[("a", "A?"), ("b", "B?")]), Some("state".to_owned())).unwrap();
    full.respond(1700, &responses(&[("a", "1")])).unwrap();
    full.park(1800, questions(&[("c", "C?")]), Some("state".to_owned())).unwrap();
    let mut anonymous = record();
    anonymous.call.principal = Some(mcp_kernel::server::Principal::new(None, ""));
    for record in [full, anonymous, record()] {
        assert_eq!(reread(&record), record);
    }
}

#[test]
fn all_else_is_refused() {
    let record = record();
    let stored = record.encode(&TaskLimits::default()).unwrap();
    let text = String::from_utf8(stored.content.to_vec()).unwrap();
    let decode = |content: &str| {
        let content = Bytes::copy_from_slice(content.as_bytes());
        TaskRecord::decode(record.id, &StoredTask { content, ..stored.clone() })
    };
    assert_eq!(decode(&text).as_ref(), Ok(&record));
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        assert!(matches!(decode(&text[..end]), Err(TaskStoreError::Invalid(_))), "{end}");
    }
    for (from, to, reason) in [
        ("\"format\":1", "\"format\":2", "format 2"),
        ("\"format\":1,\"created\":1000", "\"format\":2", "format 2"),
        ("\"working\"", "\"sleeping\"", "cannot be decoded"),
        ("\"working\"", "\"completed\"", "does not match"),
        ("2026-07-28", "2026-07-29", "revision"),
        ("\"journal\":{", "\"journal\":{\"steps\":1", "cannot be decoded"),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        let refused = decode(&text.replace(from, to)).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
    }
}

/// Each part has a limit, and the error names it.
#[test]
fn parts_are_limited() {
    let limits = TaskLimits::default().max_call_bytes(400).max_journal_bytes(500).max_outcome_bytes(600);
    let too_large = |record: &TaskRecord| match record.encode(&limits) {
        Err(TaskStoreError::TooLarge { part, bytes, max }) => (part, bytes > max, max),
        other => panic!("it is too large: {other:?}"),
    };
    assert!(record().encode(&limits).is_ok());
    let mut called = record();
    called.call.params = RawObject::parse(&format!(r#"{{"a":"{}"}}"#, "x".repeat(400))).unwrap();
    assert_eq!(too_large(&called), (TaskPart::Call, true, 400));
    let mut stepped = record();
    stepped.complete_step(1500, "a", json(&format!("\"{}\"", "x".repeat(500)))).unwrap();
    assert_eq!(too_large(&stepped), (TaskPart::Journal, true, 500));
    let mut asked = record();
    asked.request_input(1500, "a", form(&"x".repeat(500))).unwrap();
    assert_eq!(too_large(&asked), (TaskPart::Journal, true, 500));
    let mut completed = record();
    completed.complete(1500, called.call.params).unwrap();
    assert!(completed.encode(&limits).is_ok());
    let mut failed = record();
    failed.fail(1500, TaskOutcome::Error(ErrorObject::internal_error("x".repeat(600)))).unwrap();
    assert_eq!(too_large(&failed), (TaskPart::Outcome, true, 600));
    let error = failed.encode(&limits).unwrap_err().to_string();
    assert!(error.contains("`TaskLimits::max_outcome_bytes` is 600"), "{error}");
}
