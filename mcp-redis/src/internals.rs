//! Access to private code for the fuzz targets. Not part of the API.

use crate::record;
use mcp_session::{SessionId, SessionRecord, StoreError};

/// Writes the record of a session as it is stored.
///
/// # Errors
///
/// Returns an error if the record has no JSON.
pub fn encode_record(id: SessionId, record: SessionRecord) -> Result<String, StoreError> {
    record::encode(id, record)
}

/// Reads the stored record of a session.
///
/// # Errors
///
/// Returns an error if it is not a record of this session that this version writes.
pub fn decode_record(id: SessionId, stored: &[u8]) -> Result<SessionRecord, StoreError> {
    record::decode(id, stored)
}
