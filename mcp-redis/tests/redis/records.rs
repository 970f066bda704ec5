//! Records of sessions.

use std::collections::BTreeSet;
use std::time::Duration;

use mcp_session::{RecordVersion, SaveOutcome, SessionStore as _, VersionedRecord};
use tokio::time::sleep;

use crate::fixtures::{HOUR, connect, eventually, id, record};
use crate::server::{Server, limited};

/// Of all that save the same version, one does, whichever instance it is on.
// covers: S4.115
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_writer_wins_each_version() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let id = id();
        let mut writers = Vec::new();
        for writer in 0..12 {
            let sessions = connect(&server).await.sessions();
            writers.push(tokio::spawn(async move {
                let mut won = Vec::new();
                let mut found: Option<VersionedRecord> = None;
                while won.len() < 20 {
                    let (mut next, read) = match found.take() {
                        Some(found) => (found.record, found.version),
                        None => (record("shared"), RecordVersion::NONE),
                    };
                    next.subscriptions.push(writer.to_string());
                    match sessions.save(id, next.clone(), read, HOUR).await.unwrap() {
                        SaveOutcome::Saved(version) => {
                            assert_eq!(version, RecordVersion(read.0 + 1));
                            won.push(version.0);
                            found = Some(VersionedRecord { record: next, version });
                        }
                        SaveOutcome::Conflict(now) => found = Some(*now.expect("the record is not removed")),
                    }
                }
                won
            }));
        }
        let mut versions = BTreeSet::new();
        for writer in writers {
            for version in writer.await.unwrap() {
                assert!(versions.insert(version), "version {version} was won twice");
            }
        }
        assert_eq!(versions, (1..=240).collect());
        let last = connect(&server).await.sessions().load(id).await.unwrap().unwrap();
        assert_eq!((last.version, last.record.subscriptions.len()), (RecordVersion(240), 240), "no change is lost");
    })
    .await;
}

#[tokio::test]
async fn records_come_and_go() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let sessions = connect(&server).await.sessions();
        let (first, second, third) = (id(), id(), id());
        assert_eq!(sessions.load(first).await.unwrap(), None);
        assert!(!sessions.touch(first, HOUR).await.unwrap());
        assert!(!sessions.remove(first).await.unwrap());
        assert_eq!(
            sessions.save(first, record("a"), RecordVersion(1), HOUR).await.unwrap(),
            SaveOutcome::Conflict(None)
        );

        let found = VersionedRecord { record: record("a"), version: RecordVersion(1) };
        assert_eq!(
            sessions.save(first, record("a"), RecordVersion::NONE, HOUR).await.unwrap(),
            SaveOutcome::Saved(RecordVersion(1))
        );
        assert_eq!(sessions.load(first).await.unwrap(), Some(found.clone()));
        for wrong in [RecordVersion::NONE, RecordVersion(2), RecordVersion(u64::MAX - 1)] {
            let saved = sessions.save(first, record("b"), wrong, HOUR).await.unwrap();
            assert_eq!(saved, SaveOutcome::Conflict(Some(Box::new(found.clone()))));
        }
        sessions.save(first, record("b"), RecordVersion(u64::MAX), HOUR).await.unwrap_err();
        assert_eq!(sessions.load(second).await.unwrap(), None, "another session has nothing of it");
        assert!(sessions.remove(first).await.unwrap());
        assert_eq!(sessions.load(first).await.unwrap(), None);

        // The time to live, the shortest and the longest.
        sessions.save(second, record("c"), RecordVersion::NONE, Duration::from_millis(300)).await.unwrap();
        sessions.save(first, record("c"), RecordVersion::NONE, Duration::from_millis(300)).await.unwrap();
        assert!(sessions.touch(second, Duration::MAX).await.unwrap());
        assert!(sessions.load(first).await.unwrap().is_some());
        sleep(Duration::from_millis(400)).await;
        assert_eq!(sessions.load(first).await.unwrap(), None);
        assert!(!sessions.touch(first, HOUR).await.unwrap());
        assert!(sessions.load(second).await.unwrap().is_some(), "it was touched");
        sessions.save(first, record("d"), RecordVersion::NONE, Duration::MAX).await.unwrap();
        sessions.save(first, record("d"), RecordVersion(1), Duration::from_nanos(1)).await.unwrap();
        assert!(sessions.touch(first, Duration::from_nanos(1)).await.unwrap());
        sessions.save(third, record("d"), RecordVersion::NONE, Duration::from_nanos(1)).await.unwrap();
        eventually("a record expires", async || sessions.load(third).await.unwrap().is_none()).await;
        assert!(sessions.load(first).await.unwrap().is_some(), "its life is not shortened");
    })
    .await;
}
