//! Lists that mostly have one element.

use std::ops::{Deref, DerefMut};

/// A list that takes no memory of its own for its first element: what is added and removed with each request of a session is
/// not allocated, and is found where the list is.
pub(super) enum Few<T> {
    One(Option<T>),
    Many(Vec<T>),
}

impl<T> Few<T> {
    /// Inserts an element before the one at `index`.
    pub(super) fn insert(&mut self, index: usize, element: T) {
        match self {
            Self::One(only) => match only.take() {
                None => *only = Some(element),
                Some(first) => {
                    let mut all = vec![first];
                    all.insert(index, element);
                    *self = Self::Many(all);
                }
            },
            Self::Many(all) => all.insert(index, element),
        }
    }

    /// Removes the element at `index`, and the memory with the last one.
    pub(super) fn remove(&mut self, index: usize) -> Option<T> {
        match self {
            Self::One(only) => only.take_if(|_| index == 0),
            Self::Many(all) => {
                let removed = (index < all.len()).then(|| all.remove(index));
                if all.is_empty() {
                    *self = Self::default();
                }
                removed
            }
        }
    }

    /// Keeps the elements for which `is_kept` returns `true`.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&mut T) -> bool) {
        match self {
            Self::One(only) => drop(only.take_if(|only| !is_kept(only))),
            Self::Many(all) => {
                all.retain_mut(is_kept);
                if all.is_empty() {
                    *self = Self::default();
                }
            }
        }
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self::One(None)
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(only) => only.as_slice(),
            Self::Many(all) => all,
        }
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::One(only) => only.as_mut_slice(),
            Self::Many(all) => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes_memory<T>(few: &Few<T>) -> bool {
        matches!(few, Few::Many(_))
    }

    /// It is a list, whose memory exists while it has several elements.
    #[test]
    fn elements_are_kept_in_order() {
        let mut few = Few::default();
        for (index, element) in [(0, 'b'), (0, 'a'), (2, 'd'), (2, 'c')] {
            assert_eq!(takes_memory(&few), !few.is_empty() && few.len() > 1);
            few.insert(index, element);
        }
        few[3] = 'e';
        assert_eq!(*few, ['a', 'b', 'c', 'e']);
        assert_eq!([4, 1, 0].map(|index| few.remove(index)), [None, Some('b'), Some('a')]);
        few.retain(|element| *element == 'e');
        assert_eq!(*few, ['e']);
        assert_eq!([1, 0, 0].map(|index| few.remove(index)), [None, Some('e'), None]);
        assert!(few.is_empty() && !takes_memory(&few));
        for kept in [true, false] {
            few = Few::One(Some('f'));
            few.retain(|_| kept);
            assert_eq!(few.len(), usize::from(kept));
        }
        (0..2).for_each(|index| few.insert(index, 'g'));
        few.retain(|_| false);
        assert!(few.is_empty() && !takes_memory(&few));
    }
}
