//! Sessions of legacy clients.

mod few;
mod migration;
mod orphaned;
mod reader;
mod readers;
mod record_sync;
mod runner;
mod session;
mod session_code;
mod sessions;
mod stream;
mod streams;

pub(crate) use migration::MigrateSession;
pub use migration::SessionMigration;
pub(crate) use reader::StreamReader;
pub(crate) use session::SessionCounters;
pub(crate) use sessions::Sessions;
pub use stream::ResponseStream;

#[cfg(test)]
mod tests {
    use super::reader::StreamReader;
    use super::readers::Readers;
    use super::session::Session;
    use super::stream::Stream;

    /// There are many sessions, and most are idle: what grows here grows for each of them. The first two belong to every
    /// session, the others to each open stream.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn sessions_and_their_streams_are_small() {
        let sizes = [size_of::<Session>(), size_of::<Readers>(), size_of::<StreamReader>(), size_of::<Stream>()];
        let limits = [224, 96, 272, 248];
        assert!(sizes.iter().zip(limits).all(|(size, limit)| *size <= limit), "{sizes:?} of {limits:?}");
    }
}
