//! Access to private code for the fuzz targets. Not part of the API.

use crate::record;
use mcp_session::{SessionId, SessionRecord, StoreError};

/// Encodes the record of a session in its stored form.
///
/// # Errors
///
/// Returns an error if the record cannot be serialized.
pub fn encode_record(id: SessionId, record: SessionRecord) -> Result<String, StoreError> {
    record::encode(id, record)
}

/// Decodes the stored record of a session.
///
/// # Errors
///
/// Returns an error if the data is not a valid record, has another format version, or belongs to another session.
pub fn decode_record(id: SessionId, stored: &[u8]) -> Result<SessionRecord, StoreError> {
    record::decode(id, stored)
}
