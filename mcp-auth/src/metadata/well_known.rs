//! The addresses that metadata is published at.

use url::Url;

const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Returns the addresses of the metadata of a resource in the order to try them: with the path of the server, then at the root.
#[must_use]
pub fn protected_resource(server: &Url) -> Vec<Url> {
    let root = at(server, PROTECTED_RESOURCE.to_owned());
    let path = path_without_slash(server);
    if path.is_empty() && server.query().is_none() {
        return vec![root];
    }
    let mut inserted = at(server, format!("{PROTECTED_RESOURCE}{path}"));
    // The query belongs to the identifier of the resource, and the address is one of the same server.
    inserted.set_query(server.query());
    vec![inserted, root]
}

/// Returns the addresses of the metadata of an authorization server in the order to try them.
#[must_use]
pub fn authorization_server(issuer: &Url) -> Vec<Url> {
    let path = path_without_slash(issuer);
    if path.is_empty() {
        return vec![at(issuer, AUTHORIZATION_SERVER.to_owned()), at(issuer, OPENID.to_owned())];
    }
    vec![
        at(issuer, format!("{AUTHORIZATION_SERVER}{path}")),
        at(issuer, format!("{OPENID}{path}")),
        at(issuer, format!("{path}{OPENID}")),
    ]
}

fn path_without_slash(url: &Url) -> &str {
    url.path().strip_suffix('/').unwrap_or_else(|| url.path())
}

/// Returns the address with this path at the host of another address.
fn at(url: &Url, path: String) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_path(&path);
    url
}
