//! The open streams of a session.

use mcp_kernel::RequestKey;

use super::few::Few;
use super::stream::Stream;

/// The open streams of a session, by their numbers.
///
/// They are few, so a sorted list is sufficient. It takes no memory while there are none, which is most of the time.
#[derive(Default)]
pub(crate) struct Streams(Few<Entry>);

struct Entry {
    number: u64,
    /// The request that the stream was opened for. Keys and numbers grow together.
    key: Option<RequestKey>,
    /// Boxed, because the list moves its entries, and most lists have one.
    stream: Box<Stream>,
}

impl Streams {
    /// Adds the stream of a request, whose number is greater than all others.
    pub(crate) fn push(&mut self, number: u64, stream: Box<Stream>) {
        let key = stream.request;
        self.0.insert(self.0.len(), Entry { number, key, stream });
    }

    /// Returns the stream with a number, which is created if there is none.
    pub(crate) fn get_or_insert(&mut self, number: u64) -> &mut Stream {
        let index = match self.index(number) {
            Ok(index) => index,
            Err(index) => {
                self.0.insert(index, Entry { number, key: None, stream: Box::default() });
                index
            }
        };
        &mut self.0[index].stream
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Stream> {
        self.index(number).ok().map(|index| &*self.0[index].stream)
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Stream> {
        self.index(number).ok().map(|index| &mut *self.0[index].stream)
    }

    /// Returns the stream of a request whose response is not queued yet, and its number.
    pub(crate) fn of_request(&mut self, key: RequestKey) -> Option<(u64, &mut Stream)> {
        let index = self.0.binary_search_by_key(&Some(key), |entry| entry.key).ok()?;
        let Entry { number, stream, .. } = &mut self.0[index];
        stream.request.is_some().then_some((*number, stream))
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Box<Stream>> {
        self.0.remove(self.index(number).ok()?).map(|removed| removed.stream)
    }

    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(&mut Stream) -> bool) {
        self.0.retain(|entry| is_kept(&mut entry.stream));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Stream)> {
        self.0.iter().map(|entry| (entry.number, &*entry.stream))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.0.iter_mut().map(|entry| &mut *entry.stream)
    }

    fn index(&self, number: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&number, |entry| entry.number)
    }
}

#[cfg(test)]
mod tests {
    use mcp_kernel::Time;
    use mcp_server::{Caller, Connection, Server};

    use super::*;

    /// The keys of requests, in the order in which a connection received them.
    fn keys() -> Vec<RequestKey> {
        let server = Server::builder("test", "1").build().expect("a server");
        let mut connection = Connection::long_lived(&server);
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let request = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"server/discover","params":{{{meta}}}}}"#);
        let keys = (1..5).map(|id| connection.feed(Time::EPOCH, request(id).as_bytes(), &Caller::default()));
        keys.map(|key| key.expect("a request")).collect()
    }

    /// Streams are found by their number, and by their request until it has its response.
    #[test]
    fn streams_are_found() {
        let (mut streams, keys) = (Streams::default(), keys());
        for (number, key) in [(11, keys[0]), (12, keys[1]), (15, keys[3])] {
            streams.push(number, Box::new(Stream { request: Some(key), ..Stream::default() }));
        }
        streams.get_or_insert(0).bytes = 5;
        assert_eq!(streams.get_or_insert(0).bytes, 5, "the standalone stream is created once");
        let found = |streams: &mut Streams| -> Vec<_> {
            keys.iter().map(|key| streams.of_request(*key).map(|(number, _)| number)).collect()
        };
        assert_eq!(found(&mut streams), [Some(11), Some(12), None, Some(15)]);
        assert!(streams.get(12).is_some() && streams.get(13).is_none());
        streams.get_mut(12).expect("a stream").request = None;
        assert_eq!(found(&mut streams), [Some(11), None, None, Some(15)]);
        assert_eq!(streams.iter().map(|(number, _)| number).collect::<Vec<_>>(), [0, 11, 12, 15]);
        for number in [0, 11, 12, 15] {
            assert!(streams.remove(number).is_some() && streams.remove(number).is_none());
        }
        assert!(matches!(streams.0, Few::One(None)), "there is no memory without streams");
    }
}
