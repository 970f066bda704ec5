//! HTTP statuses of JSON-RPC responses.

use http::StatusCode;
use mcp_kernel::server::Failure;
use mcp_types::{Era, ErrorCode};

/// Returns the HTTP status of a JSON-RPC response, by era and error.
///
/// In the legacy era 404 means that a session has ended, so only invalid messages have an error status.
// AMB-7, DU-25
pub(crate) fn status_of(era: Era, failure: Option<Failure>) -> StatusCode {
    let Some(failure) = failure else { return StatusCode::OK };
    let (Failure::Refused(code) | Failure::Failed(code)) = failure;
    match (era, failure) {
        // H-32
        (Era::Modern, _) if code == ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        // X-14, H-29
        (Era::Modern, _) if code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => StatusCode::BAD_REQUEST,
        // H-79: parameters of tools that some clients cannot see are compared by the server.
        (Era::Modern, _) if code == ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        (Era::Modern, Failure::Refused(_)) => StatusCode::BAD_REQUEST,
        (Era::Legacy, Failure::Refused(ErrorCode::PARSE_ERROR | ErrorCode::INVALID_REQUEST)) => StatusCode::BAD_REQUEST,
        (Era::Modern | Era::Legacy, _) => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of statuses, line by line.
    // covers: H-29, H-32, S3.10, S3.16, S3.26, S3.38, DU-25, AMB-7
    #[test]
    fn the_table() {
        use ErrorCode as Code;
        use Failure::{Failed, Refused};
        for (failure, modern, legacy) in [
            (None, 200, 200),
            (Some(Refused(Code::PARSE_ERROR)), 400, 400),
            (Some(Refused(Code::INVALID_REQUEST)), 400, 400),
            (Some(Refused(Code::INVALID_PARAMS)), 400, 200),
            (Some(Refused(Code::UNSUPPORTED_PROTOCOL_VERSION)), 400, 200),
            (Some(Refused(Code::MISSING_REQUIRED_CLIENT_CAPABILITY)), 400, 200),
            (Some(Refused(Code::METHOD_NOT_FOUND)), 404, 200),
            (Some(Failed(Code::METHOD_NOT_FOUND)), 404, 200),
            (Some(Failed(Code::MISSING_REQUIRED_CLIENT_CAPABILITY)), 400, 200),
            (Some(Failed(Code::HEADER_MISMATCH)), 400, 200),
            (Some(Failed(Code::INVALID_PARAMS)), 200, 200),
            (Some(Failed(Code::INTERNAL_ERROR)), 200, 200),
            (Some(Failed(Code::PARSE_ERROR)), 200, 200),
        ] {
            assert_eq!(status_of(Era::Modern, failure), modern, "{failure:?}");
            assert_eq!(status_of(Era::Legacy, failure), legacy, "{failure:?}");
        }
    }
}
