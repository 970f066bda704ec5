//! JSON that is no message.

use crate::{Of, PARAMS, REQUEST, refuse_all, request, response};

#[test]
fn the_version() {
    refuse_all(&[
        ("no version", r#"{"id":1,"method":"m"}"#, REQUEST, request(1), "`jsonrpc` is missing"),
        ("an empty object", "{}", REQUEST, Of::Nobody, "`jsonrpc` is missing"),
        (
            "another version",
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            REQUEST,
            request(1),
            r#"`jsonrpc` must be "2.0", found "1.0""#,
        ),
        (
            "a version with a space",
            r#"{"jsonrpc":"2.0 ","id":1,"method":"m"}"#,
            REQUEST,
            request(1),
            r#"`jsonrpc` must be "2.0", found "2.0 ""#,
        ),
        (
            "an empty version",
            r#"{"jsonrpc":"","id":1,"method":"m"}"#,
            REQUEST,
            request(1),
            r#"`jsonrpc` must be "2.0", found """#,
        ),
        (
            "a version that is a number",
            r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#,
            REQUEST,
            request(1),
            r#"`jsonrpc` must be the string "2.0", found a number"#,
        ),
        (
            "a version that is null",
            r#"{"jsonrpc":null,"id":1,"method":"m"}"#,
            REQUEST,
            request(1),
            r#"`jsonrpc` must be the string "2.0", found null"#,
        ),
        (
            "a version in a list",
            r#"{"jsonrpc":["2.0"],"id":1,"result":{}}"#,
            REQUEST,
            response(1),
            r#"`jsonrpc` must be the string "2.0", found an array"#,
        ),
        (
            "a version under a name in upper case",
            r#"{"JSONRPC":"2.0","id":1,"method":"m"}"#,
            REQUEST,
            request(1),
            "`jsonrpc` is missing",
        ),
    ]);
}

#[test]
fn ids() {
    const EXPECTED: &str = "`id` must be a string or an integer";
    let no_integers =
        ["null", "1.5", "1.0", "-1.5", "1e3", "1E3", "1e400", "1e-400", "true", "false", "{}", "[]", "[1]"];
    for id in no_integers {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        let result = format!(r#"{{"jsonrpc":"2.0","result":{{}},"id":{id}}}"#);
        refuse_all(&[
            (format!("a request with id {id}"), call, REQUEST, Of::Nobody, EXPECTED),
            (format!("a result with id {id}"), result, REQUEST, Of::Nobody, EXPECTED),
        ]);
    }
    for id in ["9223372036854775808", "-9223372036854775809", "123456789012345678901234567890"] {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        refuse_all(&[(id, call, REQUEST, Of::Nobody, "`id` must fit into 64 bits")]);
    }
    refuse_all(&[
        ("null is named", r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, REQUEST, Of::Nobody, "found null"),
        ("a boolean is named", r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, REQUEST, Of::Nobody, "found a boolean"),
        ("an object is named", r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, REQUEST, Of::Nobody, "found an object"),
        ("an array is named", r#"{"jsonrpc":"2.0","id":[],"method":"m"}"#, REQUEST, Of::Nobody, "found an array"),
        ("a result without an id", r#"{"jsonrpc":"2.0","result":{}}"#, REQUEST, Of::Nobody, "`id` is missing"),
        (
            "an error with a fraction for an id",
            r#"{"jsonrpc":"2.0","id":0.5,"error":{"code":1,"message":"m"}}"#,
            REQUEST,
            Of::Nobody,
            "`id` must be a string or an integer, found a fraction",
        ),
    ]);
}

#[test]
fn methods() {
    for (value, found) in [("5", "a number"), ("null", "null"), ("true", "a boolean"), ("{}", "an object")] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":"a","method":{value}}}"#);
        let says = format!("`method` must be a string, found {found}");
        refuse_all(&[(value, text, REQUEST, Of::Request("a".into()), &*says)]);
    }
    refuse_all(&[
        (
            "a method in a list",
            r#"{"jsonrpc":"2.0","method":["m"]}"#,
            REQUEST,
            Of::Nobody,
            "`method` must be a string, found an array",
        ),
        (
            "an empty method",
            r#"{"jsonrpc":"2.0","id":1,"method":""}"#,
            REQUEST,
            request(1),
            "`method` must not be empty",
        ),
        (
            "an empty method in a notification",
            r#"{"jsonrpc":"2.0","method":""}"#,
            REQUEST,
            Of::Nobody,
            "`method` must not be empty",
        ),
        (
            "a method under a name in upper case",
            r#"{"jsonrpc":"2.0","id":1,"Method":"m"}"#,
            REQUEST,
            request(1),
            "one of `method`, `result` and `error` is required",
        ),
    ]);
}

#[test]
fn mixed_kinds() {
    const MIXED: &str = "`method` must not be combined with `result` or `error`";
    const BOTH: &str = "`result` must not be combined with `error`";
    const NEITHER: &str = "one of `method`, `result` and `error` is required";
    refuse_all(&[
        ("only a version", r#"{"jsonrpc":"2.0"}"#, REQUEST, Of::Nobody, NEITHER),
        ("only an id", r#"{"jsonrpc":"2.0","id":1}"#, REQUEST, request(1), NEITHER),
        ("params without a method", r#"{"jsonrpc":"2.0","id":1,"params":{}}"#, REQUEST, request(1), NEITHER),
        ("an escaped name of nothing", r#"{"jsonrpc":"2.0","id":1,"resul\u0054":{}}"#, REQUEST, request(1), NEITHER),
        ("a call with a result", r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, REQUEST, response(1), MIXED),
        ("a call with an error", r#"{"jsonrpc":"2.0","id":1,"method":"m","error":{}}"#, REQUEST, response(1), MIXED),
        ("a call with a null result", r#"{"jsonrpc":"2.0","result":null,"method":"m"}"#, REQUEST, Of::Nobody, MIXED),
        ("a null method with a result", r#"{"jsonrpc":"2.0","method":null,"result":{}}"#, REQUEST, Of::Nobody, MIXED),
        (
            "a result with an error",
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
            REQUEST,
            response(1),
            BOTH,
        ),
        (
            "a result with a null error",
            r#"{"jsonrpc":"2.0","id":"a","error":null,"result":{}}"#,
            REQUEST,
            Of::Response("a".into()),
            BOTH,
        ),
    ]);
}

#[test]
fn params_and_results() {
    let others = [("\"text\"", "a string"), ("5", "a number"), ("true", "a boolean"), ("[]", "an array")];
    for (value, found) in others {
        let (params, result) = (
            format!("`params` must be an object, found {found}"),
            format!("`result` must be an object, found {found}"),
        );
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{value}}}"#);
        let note = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{value}}}"#);
        let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{value}}}"#);
        refuse_all(&[
            ("the params of a request", call, PARAMS, request(1), &*params),
            ("the params of a notification", note, PARAMS, Of::Nobody, &*params),
            ("the result", answer, REQUEST, response(1), &*result),
        ]);
    }
    let members: Vec<_> = (0..1025).map(|n| format!("\"{n}\":0")).collect();
    let members = members.join(",");
    refuse_all(&[
        (
            "a null result",
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#.to_owned(),
            REQUEST,
            response(1),
            "`result` must be an object, found null",
        ),
        (
            "more params than are allowed",
            format!(r#"{{"jsonrpc":"2.0","params":{{{members}}},"id":1,"method":"m"}}"#),
            REQUEST,
            request(1),
            "`params` may have 1024 members at most",
        ),
        (
            "a result with more members than are allowed",
            format!(r#"{{"jsonrpc":"2.0","result":{{{members}}},"id":1}}"#),
            REQUEST,
            response(1),
            "`result` may have 1024 members at most",
        ),
    ]);
}

#[test]
fn errors() {
    for (error, says) in [
        ("5", "`error` must be an object, found a number"),
        ("null", "`error` must be an object, found null"),
        ("\"no\"", "`error` must be an object, found a string"),
        ("[]", "`error` must be an object, found an array"),
        ("{}", "`error.code` is missing"),
        (r#"{"message":"m"}"#, "`error.code` is missing"),
        (r#"{"code":1}"#, "`error.message` is missing"),
        (r#"{"code":1.5,"message":"m"}"#, "`error.code` must be an integer of 64 bits, found a fraction"),
        (r#"{"code":1e3,"message":"m"}"#, "`error.code` must be an integer of 64 bits"),
        (r#"{"code":9223372036854775808,"message":"m"}"#, "`error.code` must be an integer of 64 bits"),
        (r#"{"code":"-32600","message":"m"}"#, "`error.code` must be an integer of 64 bits, found a string"),
        (r#"{"code":null,"message":"m"}"#, "`error.code` must be an integer of 64 bits, found null"),
        (r#"{"code":1,"message":5}"#, "`error.message` must be a string, found a number"),
        (r#"{"code":1,"message":null}"#, "`error.message` must be a string, found null"),
        (r#"{"code":1,"message":["m"]}"#, "`error.message` must be a string, found an array"),
        (r#"{"code":1,"message":"m","code":1}"#, "`error.code` appears twice"),
        (r#"{"code":1,"message":"m","d\u0061ta":1,"data":2}"#, "`error.data` appears twice"),
    ] {
        let named = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
        let unnamed = format!(r#"{{"jsonrpc":"2.0","error":{error}}}"#);
        let null = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#);
        refuse_all(&[
            (error, named, REQUEST, response(1), says),
            (error, unnamed, REQUEST, Of::Nobody, says),
            (error, null, REQUEST, Of::Nobody, says),
        ]);
    }
}

#[test]
fn duplicates() {
    refuse_all(&[
        (
            "two versions",
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}"#,
            REQUEST,
            request(1),
            "`jsonrpc` appears twice",
        ),
        ("two ids", r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, REQUEST, Of::Nobody, "`id` appears twice"),
        (
            "the same id twice",
            r#"{"jsonrpc":"2.0","id":1,"id":1,"result":{}}"#,
            REQUEST,
            Of::Nobody,
            "`id` appears twice",
        ),
        (
            "an id that hides behind an escape",
            r#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"m"}"#,
            REQUEST,
            Of::Nobody,
            "`id` appears twice",
        ),
        (
            "a method that hides behind an escape",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","\u006d\u0065thod":"m"}"#,
            REQUEST,
            request(1),
            "`method` appears twice",
        ),
        (
            "two params of which one is null",
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null,"params":{}}"#,
            REQUEST,
            request(1),
            "`params` appears twice",
        ),
        (
            "two results",
            r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
            REQUEST,
            response(1),
            "`result` appears twice",
        ),
        (
            "two errors",
            r#"{"jsonrpc":"2.0","id":1,"error":{},"error":{}}"#,
            REQUEST,
            response(1),
            "`error` appears twice",
        ),
        (
            "a param twice",
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"a","name":"a"}}"#,
            PARAMS,
            request(1),
            "`params.name` appears twice",
        ),
        (
            "a param that hides behind an escape",
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"a","n\u0061me":"b"}}"#,
            PARAMS,
            request(1),
            "`params.name` appears twice",
        ),
        (
            "an empty name twice",
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"":1,"":2}}"#,
            PARAMS,
            request(1),
            "`params.` appears twice",
        ),
        (
            "metadata twice",
            r#"{"jsonrpc":"2.0","method":"m","params":{"_meta":{},"\u005fmeta":{}}}"#,
            PARAMS,
            Of::Nobody,
            "`params._meta` appears twice",
        ),
        (
            "a member of a result twice",
            r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true,"isError":false}}"#,
            REQUEST,
            response(1),
            "`result.isError` appears twice",
        ),
        (
            "a name beyond ASCII that hides behind a surrogate pair",
            r#"{"jsonrpc":"2.0","id":1,"result":{"😀":1,"\ud83d\ude00":2}}"#,
            REQUEST,
            response(1),
            "`result.😀` appears twice",
        ),
    ]);
    let names: String = (0..100).map(|n| format!("\"n{n}\":0,")).collect();
    refuse_all(&[(
        "a duplicate among many",
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{{names}"n\u0034\u0032":1}}}}"#),
        PARAMS,
        request(1),
        "`params.n42` appears twice",
    )]);
}

/// Which of two ids to answer is anybody's guess, whatever else is wrong.
#[test]
fn two_ids_are_none() {
    refuse_all(&[
        (
            "two ids behind two versions",
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#,
            REQUEST,
            Of::Nobody,
            "appears twice",
        ),
        (
            "two ids around two methods",
            r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"m","id":2}"#,
            REQUEST,
            Of::Nobody,
            "appears twice",
        ),
        (
            "two ids behind two results",
            r#"{"jsonrpc":"2.0","result":{},"result":{},"id":1,"id":2}"#,
            REQUEST,
            Of::Nobody,
            "appears twice",
        ),
    ]);
}
