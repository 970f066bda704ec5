//! Queues that are empty most of the time, and small then.

use std::collections::VecDeque;

/// An empty queue that has room for more than this gives it back.
const KEPT: usize = 8;

/// Adds to a queue; the first time it makes room for one, which is all that most connections ever need.
pub(crate) fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.capacity() == 0 {
        queue.reserve_exact(1);
    }
    queue.push_back(item);
}

/// Takes from a queue; the last one takes the memory of a burst with it.
pub(crate) fn pop<T>(queue: &mut VecDeque<T>) -> Option<T> {
    let item = queue.pop_front()?;
    if queue.is_empty() && queue.capacity() > KEPT {
        *queue = VecDeque::new();
    }
    Some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_leaves_nothing_behind() {
        let mut queue = VecDeque::new();
        push(&mut queue, 0);
        assert_eq!(queue.capacity(), 1);
        (1..100).for_each(|number| push(&mut queue, number));
        assert!(std::iter::from_fn(|| pop(&mut queue)).eq(0..100));
        assert_eq!(queue.capacity(), 0);
    }
}
