use mcp_auth::client::{Action, Grant, HttpRequest, HttpResponse, LoginError, RequestError, Revocation, Save};
use serde_json::json;

use crate::script::{ISSUER, Parameters, SERVER, Script, error_response};

const REVOKE: &str = "https://as.example/revoke";

fn grant() -> Grant {
    Script::new().server(|metadata| metadata["revocation_endpoint"] = json!(REVOKE)).run().grant().clone()
}

fn run(
    grant: Grant,
    mut respond: impl FnMut(&HttpRequest) -> Result<HttpResponse, RequestError>,
) -> (Result<(), LoginError>, Vec<HttpRequest>) {
    let (mut revocation, mut requests) = (Revocation::new(grant), Vec::new());
    let Action::Save(change) = revocation.poll() else { panic!("the tokens are dropped first") };
    assert_eq!(change, Save::ForgetGrant { issuer: ISSUER.to_owned(), resource: SERVER.to_owned() });
    assert!(matches!(revocation.poll(), Action::Idle));
    revocation.handle_saved();
    loop {
        match revocation.poll() {
            Action::Fetch(request) => {
                match respond(&request) {
                    Ok(response) => revocation.handle_response(&response),
                    Err(error) => revocation.handle_failure(error),
                }
                requests.push(request);
            }
            Action::Done(_) => return (Ok(()), requests),
            Action::Failed(error) => return (Err(error), requests),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn both_tokens_are_revoked_the_refresh_token_first() {
    let (result, requests) = run(grant(), |_| Ok(HttpResponse::new(200, "")));
    assert_eq!(result, Ok(()));
    let forms: Vec<_> = requests.iter().map(Parameters::of_body).collect();
    assert!(requests.iter().all(|request| request.url == REVOKE));
    assert_eq!((forms[0].get("token"), forms[0].get("token_type_hint")), (Some("refresh-1"), Some("refresh_token")));
    assert_eq!((forms[1].get("token"), forms[1].get("token_type_hint")), (Some("access-1"), Some("access_token")));
    assert_eq!(forms[0].get("client_id"), Some("client-1"));
    assert_eq!(forms.len(), 2);
}

#[test]
fn a_server_that_cannot_revoke_is_not_asked() {
    let mut grant = grant();
    grant.revocation_endpoint = None;
    let (result, requests) = run(grant, |_| panic!("nothing is sent"));
    assert_eq!((result, requests.len()), (Ok(()), 0));
    let unsafe_endpoint =
        Script::new().server(|metadata| metadata["revocation_endpoint"] = json!("http://as.example/revoke")).run();
    assert_eq!(unsafe_endpoint.grant().revocation_endpoint, None);
}

#[test]
fn a_failure_is_reported_after_all_was_tried() {
    let (result, requests) = run(grant(), |_| Err(RequestError::Unreachable("no route".to_owned())));
    assert!(result.unwrap_err().is_transient());
    assert_eq!(requests.len(), 2);
    let (result, _) = run(grant(), |_| Ok(error_response(400, "invalid_client")));
    assert!(matches!(result, Err(LoginError::TokenRefused { .. })));
    let (result, _) = run(grant(), |_| Ok(HttpResponse::new(503, "")));
    assert!(matches!(result, Err(LoginError::Status { status: 503, .. })));
    let (result, _) = run(grant(), |_| Ok(error_response(400, "unsupported_token_type")));
    assert_eq!(result, Ok(()), "some servers can only revoke refresh tokens");
}
