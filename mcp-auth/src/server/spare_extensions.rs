//! Extensions of earlier requests, for later ones.

use std::cell::Cell;

use http::Extensions;

thread_local! {
    /// An empty map with room for values. One is enough for requests whose handlers do not wait.
    static SPARE: Cell<Option<Extensions>> = const { Cell::new(None) };
}

/// Inserts a value into the extensions of a request. They need no memory of their own if a map of an earlier request was kept.
pub(super) fn insert<T: Clone + Send + Sync + 'static>(extensions: &mut Extensions, value: T) {
    if extensions.is_empty()
        && let Some(spare) = SPARE.try_with(Cell::take).ok().flatten()
    {
        *extensions = spare;
    }
    extensions.insert(value);
}

/// Keeps the extensions of a response for a later request, if they are empty: `HttpService` responds with those of the request.
pub(super) fn keep(extensions: &mut Extensions) {
    if extensions.is_empty() {
        // Without the place the thread ends.
        let _ = SPARE.try_with(|spare| spare.set(Some(std::mem::take(extensions))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map with values is neither replaced nor kept, so no request gets values of another one.
    #[test]
    fn only_empty_maps_are_used_again() {
        let mut request = Extensions::new();
        insert(&mut request, 1_u8);
        request.insert("other");
        insert(&mut request, 2_u8);
        assert_eq!((request.get(), request.get(), request.len()), (Some(&2_u8), Some(&"other"), 2));
        keep(&mut request);
        assert_eq!(request.len(), 2, "it is still the response's");
        request.clear();
        keep(&mut request);
        assert!(SPARE.take().is_some_and(|spare| spare.is_empty()));
        let mut next = Extensions::new();
        keep(&mut request);
        insert(&mut next, 3_u8);
        assert_eq!((next.get(), next.len()), (Some(&3_u8), 1));
        assert!(SPARE.take().is_none(), "it is in use");
    }
}
