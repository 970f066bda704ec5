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
    let item = queue.pop_front();
    if queue.is_empty() && queue.capacity() > KEPT {
        *queue = VecDeque::new();
    }
    item
}

/// First in, first out. A single element takes no room of its own, which is what a connection mostly needs for news,
/// and a driver for what it has to do next.
#[derive(Debug)]
pub struct Fifo<T> {
    first: Option<T>,
    /// Empty if there is no first.
    others: VecDeque<T>,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { first: None, others: VecDeque::new() }
    }
}

impl<T> Fifo<T> {
    /// Adds an element.
    pub fn push(&mut self, element: T) {
        if self.first.is_none() {
            self.first = Some(element);
        } else {
            self.others.push_back(element);
        }
    }

    /// Takes the element that was added first.
    pub fn pop(&mut self) -> Option<T> {
        let first = self.first.take()?;
        self.first = pop(&mut self.others);
        Some(first)
    }

    /// The element that was added last.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.others.back_mut().or(self.first.as_mut())
    }

    /// Drops those elements that are not to be kept.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.others.retain(&mut keep);
        if self.first.take_if(|first| !keep(first)).is_some() {
            self.first = self.others.pop_front();
        }
    }

    /// Drops all elements.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
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

    #[test]
    fn order_is_kept() {
        let mut fifo = Fifo::default();
        for number in 0..6 {
            fifo.push(number);
        }
        assert_eq!(fifo.pop(), Some(0));
        fifo.retain(|number| number % 2 == 0);
        fifo.push(7);
        assert_eq!(std::iter::from_fn(|| fifo.pop()).collect::<Vec<_>>(), [2, 4, 7]);
        assert!(fifo.is_empty());
        fifo.push(8);
        assert_eq!(fifo.last_mut(), Some(&mut 8));
        fifo.clear();
        assert_eq!((fifo.pop(), fifo.last_mut()), (None, None));
    }

    #[test]
    fn a_burst_leaves_nothing_behind_in_a_fifo() {
        let mut fifo = Fifo::default();
        fifo.push(0);
        assert_eq!(fifo.others.capacity(), 0);
        (1..100).for_each(|number| fifo.push(number));
        assert_eq!(fifo.last_mut(), Some(&mut 99));
        assert!(std::iter::from_fn(|| fifo.pop()).eq(0..100));
        assert_eq!(fifo.others.capacity(), 0);
    }
}
