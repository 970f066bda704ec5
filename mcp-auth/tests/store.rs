//! Stores: what they keep, who can read it, and who waits for whom.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_auth::Secret;
use mcp_auth::store::{FileStore, MemoryStore, StoreError, StoreKey, TokenStore};

/// A directory that is removed at the end of the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcp-auth-store-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn store(&self) -> FileStore {
        FileStore::new(self.path()).lock_timeout(Duration::from_secs(20))
    }

    fn path(&self) -> PathBuf {
        self.0.join("nested").join("logins.json")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn key(name: &str) -> StoreKey {
    StoreKey::login(&format!("https://{name}.example.com/mcp"), None)
}

fn record(value: &str) -> Secret {
    Secret::new(serde_json::json!({ "value": value }).to_string())
}

async fn keeps_records(store: &dyn TokenStore) {
    assert_eq!(store.load(&key("a")).await.unwrap(), None);
    store.remove(&key("a")).await.unwrap();
    store.save(&key("a"), &record("1")).await.unwrap();
    store.save(&key("b"), &record("2")).await.unwrap();
    store.save(&key("a"), &record("3")).await.unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap(), Some(record("3")));
    assert_eq!(store.load(&key("b")).await.unwrap(), Some(record("2")));
    store.remove(&key("a")).await.unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap(), None);
    assert_eq!(store.load(&key("b")).await.unwrap(), Some(record("2")));
}

/// Checks that locks of one key exclude each other, and those of different keys do not.
async fn locks_exclude(one: Arc<dyn TokenStore>, other: Arc<dyn TokenStore>) {
    let held = one.lock(&key("a")).await.unwrap();
    let other_key = other.lock(&key("b")).await.unwrap();
    let key_a = key("a");
    let waiting = other.lock(&key_a);
    assert!(tokio::time::timeout(Duration::from_millis(150), waiting).await.is_err(), "the lock is held");
    drop(held);
    let held = tokio::time::timeout(Duration::from_secs(5), other.lock(&key("a"))).await.unwrap().unwrap();
    drop((held, other_key));

    let inside = Arc::new(AtomicUsize::new(0));
    let tasks = (0..16).map(|index| {
        let store = Arc::clone(if index % 2 == 0 { &one } else { &other });
        let inside = Arc::clone(&inside);
        tokio::spawn(async move {
            let held = store.lock(&key("a")).await.unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
            tokio::time::sleep(Duration::from_millis(3)).await;
            inside.fetch_sub(1, Ordering::SeqCst);
            drop(held);
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn memory_keeps_records_and_its_locks_exclude() {
    let store = MemoryStore::new();
    keeps_records(&store).await;
    locks_exclude(Arc::new(store.clone()), Arc::new(store)).await;
}

#[tokio::test]
async fn a_file_keeps_records_and_its_locks_exclude() {
    let directory = Directory::new("keeps");
    keeps_records(&directory.store()).await;
    locks_exclude(Arc::new(directory.store()), Arc::new(directory.store())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_stores_on_one_file_lose_no_record_of_each_other() {
    let directory = Directory::new("two");
    let tasks = (0..2).map(|number| {
        let store = directory.store();
        tokio::spawn(async move {
            for index in 0..20 {
                store.save(&key(&format!("{number}-{index}")), &record("x")).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let store = directory.store();
    for number in 0..2 {
        for index in 0..20 {
            assert_eq!(store.load(&key(&format!("{number}-{index}"))).await.unwrap(), Some(record("x")));
        }
    }
    let files: Vec<_> = std::fs::read_dir(directory.path().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(files.iter().all(|name| name == "logins.json" || name.ends_with(".lock")), "{files:?}");
}

#[tokio::test]
async fn a_lock_that_is_not_released_in_time_is_an_error_that_names_it() {
    let directory = Directory::new("timeout");
    let held = directory.store().lock(&key("a")).await.unwrap();
    let impatient = directory.store().lock_timeout(Duration::from_millis(50));
    let error = impatient.lock(&key("a")).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    assert!(error.to_string().contains("logins.json"), "{error}");
    drop(held);
    impatient.lock(&key("a")).await.unwrap();
}

// covers: AU-14
#[cfg(unix)]
#[tokio::test]
async fn only_the_user_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = Directory::new("modes");
    let store = directory.store();
    store.save(&key("a"), &record("1")).await.unwrap();
    drop(store.lock(&key("a")).await.unwrap());
    // A file that was made readable for others is not so after the next change.
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    store.save(&key("a"), &record("2")).await.unwrap();

    let folder = directory.path().parent().unwrap().to_owned();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 3, "the file and two locks");
}

#[tokio::test]
async fn a_damaged_file_is_an_error_that_names_it_and_the_file_is_left_as_it_is() {
    let directory = Directory::new("damaged");
    let store = directory.store();
    store.save(&key("a"), &record("1")).await.unwrap();
    for content in [
        "",
        "{",
        "[]",
        "{\"version\":1}",
        "{\"version\":1,\"records\":{\"login https://a.example.com/mcp\":{\"value\":\"hunter2",
        "{\"version\":\"hunter2\"}",
        "hunter2",
    ] {
        std::fs::write(directory.path(), content).unwrap();
        let errors = [
            store.load(&key("a")).await.unwrap_err(),
            store.save(&key("b"), &record("2")).await.unwrap_err(),
            store.remove(&key("a")).await.unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
            let shown = format!("{error} {error:?}");
            assert!(error.to_string().contains(directory.path().to_str().unwrap()), "{shown}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert_eq!(std::fs::read_to_string(directory.path()).unwrap(), content);
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_kept_when_another_is_saved() {
    let directory = Directory::new("record");
    let store = directory.store();
    std::fs::create_dir_all(directory.path().parent().unwrap()).unwrap();
    let content =
        "{\"version\":1,\"records\":{\"login https://a.example.com/mcp\":[\"of another program\"]},\"more\":1}";
    std::fs::write(directory.path(), content).unwrap();
    store.save(&key("b"), &record("2")).await.unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap().unwrap().expose(), "[\"of another program\"]");
    assert_eq!(store.load(&key("b")).await.unwrap(), Some(record("2")));
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_neither_read_nor_overwritten() {
    let directory = Directory::new("newer");
    let store = directory.store();
    std::fs::create_dir_all(directory.path().parent().unwrap()).unwrap();
    std::fs::write(directory.path(), "{\"version\":2,\"logins\":[]}").unwrap();
    for error in [store.load(&key("a")).await.unwrap_err(), store.save(&key("a"), &record("1")).await.unwrap_err()] {
        assert!(matches!(error, StoreError::Newer { found: 2, supported: 1, .. }), "{error:?}");
    }
    assert_eq!(std::fs::read_to_string(directory.path()).unwrap(), "{\"version\":2,\"logins\":[]}");
}

#[tokio::test]
async fn a_temporary_file_of_a_killed_process_is_no_obstacle() {
    let directory = Directory::new("killed");
    let store = directory.store();
    store.save(&key("a"), &record("1")).await.unwrap();
    let rest = directory.path().with_file_name(format!("logins.json.{}-0-0000000000000000.tmp", std::process::id()));
    std::fs::write(&rest, "{\"version\":1,\"rec").unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap(), Some(record("1")));
    store.save(&key("a"), &record("2")).await.unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap(), Some(record("2")));
    assert!(!rest.exists(), "its secrets are removed");
}

#[tokio::test]
async fn files_of_other_stores_in_the_directory_are_not_removed() {
    let directory = Directory::new("others");
    let store = FileStore::new(directory.path().with_file_name("logins"));
    store.save(&key("a"), &record("1")).await.unwrap();
    let others = ["logins.json.7-0-0123456789abcdef.tmp", "logins.tmp", "logins.7.tmp", "logins.7-0-0-0.tmp"];
    let others = others.map(|name| directory.path().with_file_name(name));
    for other in &others {
        std::fs::write(other, "of another program").unwrap();
    }
    let own = directory.path().with_file_name("logins.7-0-0123456789abcdef.tmp");
    std::fs::write(&own, "of a killed process").unwrap();
    store.save(&key("a"), &record("2")).await.unwrap();
    assert!(!own.exists());
    for other in &others {
        assert!(other.exists(), "{}", other.display());
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_an_error_that_names_it() {
    let directory = Directory::new("place");
    std::fs::create_dir_all(&directory.0).unwrap();
    std::fs::write(directory.0.join("nested"), "a file").unwrap();
    let error = directory.store().save(&key("a"), &record("1")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("logins.json"), "{error}");
}

// covers: AU-14
#[tokio::test]
async fn stores_show_no_records() {
    let directory = Directory::new("debug");
    let (file, memory) = (directory.store(), MemoryStore::new());
    file.save(&key("a"), &record("hunter2")).await.unwrap();
    memory.save(&key("a"), &record("hunter2")).await.unwrap();
    let lock = memory.lock(&key("a")).await.unwrap();
    assert!(!format!("{file:?} {memory:?} {lock:?}").contains("hunter2"));
    let error = file.save(&key("a"), &Secret::new("hunter2")).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
}
