//! The users, their roles, and how they authenticate.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use mcp::server::{Principal, Viewer};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Member,
    Admin,
}

struct User {
    name: &'static str,
    token: &'static str,
    role: Role,
}

/// All users, in memory, because roles are looked up for each item of a list.
#[derive(Clone, Copy)]
pub(crate) struct Users(&'static [User]);

impl Users {
    /// The users of the example. A real server would validate tokens of an authorization server.
    pub(crate) const EXAMPLE: Self = Self(&[
        User { name: "ann", token: "ann-secret", role: Role::Admin },
        User { name: "bob", token: "bob-secret", role: Role::Member },
    ]);
}

/// Whether the client belongs to an administrator.
pub(crate) fn is_admin(viewer: &Viewer<'_>) -> bool {
    let (Some(users), Some(principal)) = (viewer.state::<Users>(), viewer.principal()) else { return false };
    users.0.iter().any(|user| user.role == Role::Admin && *user.name == *principal.subject)
}

/// Tells the server who the user is, or refuses the request.
pub(crate) async fn authenticate(State(users): State<Users>, mut request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| value.strip_prefix("Bearer "));
    let Some(user) = token.and_then(|token| users.0.iter().find(|user| user.token == token)) else {
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response();
    };
    request.extensions_mut().insert(Principal::new(None, user.name));
    next.run(request).await
}
