//! The headers of a modern request, as claims about its body.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use mcp_kernel::server::RequestClaims;
use mcp_server::{ParamClaims, Server};
use mcp_types::jsonrpc::Request;
use mcp_types::{ErrorObject, Method, ProtocolVersion};

use super::headers::{
    HeaderMismatch, HeaderMismatchKind, VersionHeader, check_method_and_name, check_param, requested_name,
};

/// The headers of a modern request, for the kernel to compare with the body.
pub(crate) struct HeaderClaims<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) version: &'a VersionHeader,
    /// Knows the parameters of each tool that have to be repeated in `Mcp-Param-*` headers.
    pub(crate) server: &'a Server,
}

impl HeaderClaims<'_> {
    /// Checks the `Mcp-Param-*` headers of a tool call, given the name of the tool as JSON.
    // H-77, H-79
    fn check_params(&self, request: &Request<'_>, tool: Option<&str>) -> Result<(), HeaderMismatch> {
        let Some(tool) = tool.filter(|_| request.method == Method::TOOLS_CALL) else { return Ok(()) };
        // A name with escapes is rare, and has to be decoded.
        let plain = tool.strip_prefix('"').and_then(|tool| tool.strip_suffix('"'));
        let name = match plain.filter(|plain| !plain.as_bytes().contains(&b'\\')) {
            Some(plain) => Cow::Borrowed(plain),
            None => serde_json::from_str(tool).unwrap_or_default(),
        };
        let Some(repeated) = self.server.header_params(&name) else { return Ok(()) };
        let arguments = request.params.as_ref().and_then(|params| params.get("arguments"));
        let arguments = arguments.map_or("{}", |arguments| arguments.get());
        repeated.iter().try_for_each(|param| check_param(self.headers, &param.name, &param.path, arguments))
    }
}

impl RequestClaims for HeaderClaims<'_> {
    fn check_version(&self, version: &ProtocolVersion) -> Result<(), ErrorObject> {
        if *self.version == VersionHeader::Missing {
            return Ok(());
        }
        self.version.check(version).map_err(|fault| fault.to_error_object())
    }

    fn check_request(&self, request: &Request<'_>) -> Result<(), ErrorObject> {
        if *self.version == VersionHeader::Missing {
            return Err(HeaderMismatch::of_version(HeaderMismatchKind::Missing).to_error_object());
        }
        let name = requested_name(request);
        check_method_and_name(self.headers, request, name)
            .and_then(|()| self.check_params(request, name))
            .map_err(|fault| fault.to_error_object())
    }
}

/// The `Mcp-Param-*` headers of a request, for tools of which it is not known before whether the client can see them.
pub(crate) fn param_claims(parts: Arc<http::request::Parts>) -> ParamClaims {
    ParamClaims::new(move |param, arguments| {
        check_param(&parts.headers, &param.name, &param.path, arguments).map_err(|fault| fault.to_error_object())
    })
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use mcp_server::{Caller, Connection, NoArguments, tool};
    use mcp_types::jsonrpc::{Limits, Message, parse};

    use super::*;
    use crate::clock::now;
    use crate::rules::request_headers::RequestHeaders;

    const MODERN: &str = "2026-07-28";
    const LIST: &[(&str, &str)] = &[("mcp-method", "tools/list")];
    const CALL: &[(&str, &str)] = &[("mcp-method", "tools/call"), ("mcp-name", "a")];

    /// Returns the code of the error that a server responds with at once, if it does.
    fn refused(version: Option<&str>, others: &[(&'static str, &'static str)], body: &str) -> Option<i64> {
        let mut headers = HeaderMap::new();
        for (name, value) in version.map(|version| ("mcp-protocol-version", version)).iter().chain(others) {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        let server = Server::builder("demo", "1.0").tool(tool("a", async |_, _: NoArguments| "done")).build().unwrap();
        let mut connection = Connection::modern_request(&server);
        let (incoming, version) = (
            parse(body.as_bytes(), &Limits::default()).unwrap(),
            VersionHeader::read(RequestHeaders::read(&headers).version),
        );
        let claims = HeaderClaims { headers: &headers, version: &version, server: &server };
        connection.feed_parsed(now(), incoming, &Caller::default(), Some(&claims));
        let response = connection.poll_transmit()?.message;
        let Ok(Message::Response(response)) = Message::parse(&response, &Limits::default()) else { panic!("{body}") };
        response.outcome.err().map(|error| error.code.get())
    }

    /// A request with the version and the capabilities as JSON.
    fn modern(method: &str, version: &str, capabilities: &str, rest: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{rest}"_meta":{{
               "io.modelcontextprotocol/protocolVersion":{version},
               "io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#
        )
    }

    /// A request with several faults gets the error of the first one, be it in the headers or in the body.
    // covers: DU-10, DU-13, DU-14, DU-18, H-42, H-44..H-47, H-52, H-55
    #[test]
    fn headers_are_compared_in_order() {
        let good = modern("tools/list", r#""2026-07-28""#, "{}", "");
        let call = modern("tools/call", r#""2026-07-28""#, "{}", r#""name":"a","#);
        let nameless = modern("tools/call", r#""2026-07-28""#, "{}", "");
        let unknown = modern("tools/list", r#""v999""#, "{}", "");
        let old = modern("tools/list", r#""2025-11-25""#, "{}", "");
        let initialize = modern("initialize", r#""2026-07-28""#, "{}", "");
        let no_capabilities = good.replace("clientCapabilities", "others");
        let (fits, differs, params, version) = (None, Some(-32020), Some(-32602), Some(-32022));
        for (what, named, others, body, expected) in [
            ("everything fits", Some(MODERN), LIST, &good, fits),
            ("with a name", Some(MODERN), CALL, &call, fits),
            ("the body decides, not the header", Some("2025-11-25"), LIST, &good, differs),
            ("no version", None, LIST, &good, differs),
            ("another version", Some("v999"), LIST, &good, differs),
            ("no method", Some(MODERN), &[], &good, differs),
            ("another method", Some(MODERN), CALL, &good, differs),
            ("no name", Some(MODERN), &CALL[..1], &call, differs),
            ("no name in the body either", Some(MODERN), &CALL[..1], &nameless, fits),
            ("-32602 before a missing header", None, LIST, &no_capabilities, params),
            ("-32602 before another version", Some("v999"), LIST, &no_capabilities, params),
            ("-32602 before other headers", Some(MODERN), &[], &no_capabilities, params),
            ("-32602 for what is no text", None, LIST, &modern("tools/list", "7", "{}", ""), params),
            ("-32602 for what is no object", None, LIST, &modern("tools/list", r#""v999""#, "7", ""), params),
            ("-32020 before -32022", Some(MODERN), LIST, &unknown, differs),
            ("-32022 if both say so", Some("v999"), LIST, &unknown, version),
            ("-32022 before missing headers", Some("v999"), &[], &unknown, version),
            ("-32022 before a missing version", None, &[], &unknown, version),
            ("-32022 for legacy versions", Some("2025-11-25"), LIST, &old, version),
            ("-32020 before -32601", Some(MODERN), LIST, &initialize, differs),
            ("no handshake", Some(MODERN), &[("mcp-method", "initialize")], &initialize, Some(-32601)),
        ] {
            assert_eq!(refused(named, others, body), expected, "{what}");
        }
        let twice = [("mcp-protocol-version", MODERN), LIST[0]];
        assert_eq!(refused(Some(MODERN), &twice, &good), differs);
    }
}
