//! A queue that mostly holds one.

use std::collections::VecDeque;

/// First in, first out. A single element takes no room of its own.
pub(crate) struct Fifo<T> {
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
    pub(crate) fn push(&mut self, element: T) {
        if self.first.is_none() {
            self.first = Some(element);
        } else {
            self.others.push_back(element);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let first = self.first.take()?;
        self.first = self.others.pop_front();
        Some(first)
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.others.retain(&mut keep);
        if self.first.take_if(|first| !keep(first)).is_some() {
            self.first = self.others.pop_front();
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        fifo.clear();
        assert_eq!(fifo.pop(), None);
    }
}
