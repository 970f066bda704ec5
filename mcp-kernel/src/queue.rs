//! Queues that are empty most of the time and take little memory then.

use std::collections::VecDeque;

/// An empty queue with a larger capacity is deallocated.
const KEPT: usize = 8;

/// Appends an item. The first time it allocates room for one only, which is all that most connections need.
pub(crate) fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.capacity() == 0 {
        queue.reserve_exact(1);
    }
    queue.push_back(item);
}

/// Removes the first item, and with the last one the memory of a burst.
pub(crate) fn pop<T>(queue: &mut VecDeque<T>) -> Option<T> {
    let item = queue.pop_front();
    if queue.is_empty() && queue.capacity() > KEPT {
        *queue = VecDeque::new();
    }
    item
}

/// A queue whose first element is stored inline: most queues of events and of work never have more than one.
#[derive(Debug)]
pub struct Fifo<T> {
    first: Option<T>,
    /// Absent or empty if there is no first element.
    #[expect(clippy::box_collection, reason = "most queues never have it, and there is one in each session")]
    others: Option<Box<VecDeque<T>>>,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { first: None, others: None }
    }
}

impl<T> Fifo<T> {
    /// Adds an element.
    pub fn push(&mut self, element: T) {
        if self.first.is_none() {
            self.first = Some(element);
        } else {
            self.others.get_or_insert_default().push_back(element);
        }
    }

    /// Removes the element that was added first.
    pub fn pop(&mut self) -> Option<T> {
        let first = self.first.take()?;
        if let Some(others) = &mut self.others {
            self.first = pop(others);
        }
        Some(first)
    }

    /// Returns the element that was added last.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.others.as_mut().and_then(|others| others.back_mut()).or(self.first.as_mut())
    }

    /// Removes the elements for which `keep` returns `false`.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        if let Some(others) = &mut self.others {
            others.retain(&mut keep);
        }
        if self.first.take_if(|first| !keep(first)).is_some() {
            self.first = self.others.as_mut().and_then(|others| others.pop_front());
        }
    }

    /// Removes the last element for which `is_it` returns `true`; returns whether there was one.
    pub(crate) fn remove_last(&mut self, is_it: impl Fn(&T) -> bool) -> bool {
        if let Some(others) = &mut self.others
            && let Some(index) = others.iter().rposition(&is_it)
        {
            return others.remove(index).is_some();
        }
        let is_first = self.first.take_if(|first| is_it(first)).is_some();
        if is_first {
            self.first = self.others.as_mut().and_then(|others| others.pop_front());
        }
        is_first
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns whether there are no elements.
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
        assert!(fifo.others.is_none());
        (1..100).for_each(|number| fifo.push(number));
        assert_eq!(fifo.last_mut(), Some(&mut 99));
        assert!(std::iter::from_fn(|| fifo.pop()).eq(0..100));
        assert!(fifo.others.is_none_or(|others| others.capacity() == 0));
    }
}
