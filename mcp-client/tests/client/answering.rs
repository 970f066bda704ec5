//! What the server asks of the client, in either era.

use mcp_client::types::{ElicitAction, ElicitResult, ElicitValue, ErrorObject, Revision, Root};
use mcp_client::{Client, Error};

use crate::demo::{connect, connect_with, limited};

/// The same function answers real requests and multi round-trip ones; defaults are filled in.
// covers: DU-26, EL-4, EL-7
#[tokio::test]
async fn forms_are_answered_in_both_eras() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = connect(revision).await;
        let result = limited(client.call_tool("ask")).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("Ada 30"), "{revision}");
    }
}

/// An answer that does not fit the form is not sent.
// covers: EL-19
#[tokio::test]
async fn answers_fit_their_form() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let builder = Client::builder("test", "1.0");
        let builder =
            builder.on_form_elicitation(async |_, _| ElicitResult::accepted([("name", ElicitValue::from(1))]));
        let client = connect_with(builder, revision).await;
        let refused = limited(client.call_tool("ask")).await;
        let told = format!("{refused:?}");
        assert!(told.contains("the form content is invalid: `name` must be a string"), "{revision}: {told}");
    }
}

#[tokio::test]
async fn a_person_may_decline() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let builder =
            Client::builder("test", "1.0").on_form_elicitation(async |_, _| ElicitResult::new(ElicitAction::Decline));
        let client = connect_with(builder, revision).await;
        let result = limited(client.call_tool("ask")).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("declined"), "{revision}");
    }
}

/// A modern call that cannot be completed says which question was not answered.
#[tokio::test]
async fn a_question_may_be_refused() {
    let builder = Client::builder("test", "1.0")
        .on_form_elicitation(async |_, _| Err::<ElicitResult, _>(ErrorObject::internal_error("the user is away")));
    let client = connect_with(builder, Revision::V2026_07_28).await;
    let refused = limited(client.call_tool("ask")).await;
    assert!(matches!(refused, Err(Error::InputRequestFailed { key, .. }) if key == "who"));
}

/// What is not implemented is not declared, so nobody asks.
// covers: EL-1
#[tokio::test]
async fn capabilities_follow_from_the_functions() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = connect_with(Client::builder("test", "1.0"), revision).await;
        assert!(limited(client.call_tool("ask")).await.is_err(), "{revision}");
        assert!(limited(client.call_tool("roots")).await.is_err(), "{revision}");
    }
}

/// Roots are listed, and can change.
// covers: RO-1
#[tokio::test]
async fn roots_are_listed() {
    for revision in [Revision::V2024_11_05, Revision::V2025_11_25, Revision::V2026_07_28] {
        let builder = Client::builder("test", "1.0").roots([Root::new("file:///a")]);
        let client = connect_with(builder, revision).await;
        let roots = async || limited(client.call_tool("roots")).await.unwrap();
        assert_eq!(roots().await.content[0].as_text(), Some("file:///a"), "{revision}");
        limited(client.set_roots([Root::new("file:///b"), Root::new("file:///c")])).await.unwrap();
        assert_eq!(roots().await.content[0].as_text(), Some("file:///b file:///c"), "{revision}");
    }
}
