//! Things that keep their place, and orders of them that cost nothing to change.

/// Things, each in a place of its own; a place is used again when it is free.
pub(crate) struct Slab<V> {
    places: Vec<Option<Box<V>>>,
    free: Vec<u32>,
}

/// The neighbours of a thing in one order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    older: u32,
    younger: u32,
}

/// An order of things, from the oldest to the youngest. Everything but walking along takes the same time for any length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    oldest: u32,
    youngest: u32,
}

/// Which order of several is meant.
pub(crate) type Order<V> = fn(&mut V) -> &mut Link;

impl<V> Slab<V> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, thing: V) -> u32 {
        let thing = Some(Box::new(thing));
        if let Some(place) = self.free.pop()
            && let Some(free) = self.places.get_mut(place as usize)
        {
            *free = thing;
            return place;
        }
        let place = u32::try_from(self.places.len()).ok().filter(|place| *place != NOWHERE);
        self.places.push(thing);
        place.expect("memory ends before there are 2^32 things")
    }

    pub(crate) fn get(&self, place: u32) -> Option<&V> {
        self.places.get(place as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut V> {
        self.places.get_mut(place as usize)?.as_deref_mut()
    }

    /// Takes a thing out, which is in no order any more.
    pub(crate) fn remove(&mut self, place: u32) -> Option<V> {
        let thing = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        if self.free.len() == self.places.len() {
            // Nothing is left: whatever was needed at the busiest time need not be kept.
            *self = Self::new();
        }
        Some(*thing)
    }

    /// All places that are taken, in no order that means anything.
    pub(crate) fn taken(&self) -> Vec<u32> {
        (0..).zip(&self.places).filter(|(_, thing)| thing.is_some()).map(|(place, _)| place).collect()
    }
}

impl Link {
    /// That of a thing which is in no order.
    pub(crate) const LOOSE: Self = Self { older: NOWHERE, younger: NOWHERE };

    /// What came after a thing.
    pub(crate) fn younger(self) -> Option<u32> {
        Some(self.younger).filter(|place| *place != NOWHERE)
    }
}

impl List {
    pub(crate) const EMPTY: Self = Self { oldest: NOWHERE, youngest: NOWHERE };

    pub(crate) fn oldest(self) -> Option<u32> {
        Some(self.oldest).filter(|place| *place != NOWHERE)
    }

    pub(crate) fn youngest(self) -> Option<u32> {
        Some(self.youngest).filter(|place| *place != NOWHERE)
    }

    /// Makes a thing the youngest.
    pub(crate) fn push<V>(&mut self, things: &mut Slab<V>, place: u32, order: Order<V>) {
        let Some(thing) = things.get_mut(place) else { return };
        *order(thing) = Link { older: self.youngest, younger: NOWHERE };
        match things.get_mut(self.youngest) {
            Some(youngest) => order(youngest).younger = place,
            None => self.oldest = place,
        }
        self.youngest = place;
    }

    /// Takes a thing out that is in this order.
    pub(crate) fn remove<V>(&mut self, things: &mut Slab<V>, place: u32, order: Order<V>) {
        let Some(thing) = things.get_mut(place) else { return };
        let Link { older, younger } = std::mem::replace(order(thing), Link::LOOSE);
        match things.get_mut(older) {
            Some(thing) => order(thing).younger = younger,
            None => self.oldest = younger,
        }
        match things.get_mut(younger) {
            Some(thing) => order(thing).older = older,
            None => self.youngest = older,
        }
    }
}

const NOWHERE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(list: List, things: &mut Slab<(char, Link)>) -> String {
        let (mut text, mut next) = (String::new(), list.oldest());
        while let Some(thing) = next.and_then(|place| things.get_mut(place)) {
            text.push(thing.0);
            next = thing.1.younger();
        }
        text
    }

    /// An order stays one, whoever leaves it.
    #[test]
    fn orders_are_kept() {
        let (mut things, mut list) = (Slab::new(), List::EMPTY);
        let places: Vec<_> = "abcde".chars().map(|name| things.insert((name, Link::LOOSE))).collect();
        let order: Order<(char, Link)> = |thing| &mut thing.1;
        for place in &places {
            list.push(&mut things, *place, order);
        }
        assert_eq!(walk(list, &mut things), "abcde");
        for (place, left) in [(2, "abde"), (0, "bde"), (4, "bd")] {
            list.remove(&mut things, places[place], order);
            assert_eq!(walk(list, &mut things), left);
        }
        list.push(&mut things, places[0], order);
        assert_eq!(walk(list, &mut things), "bda");
        for place in [3, 1, 0] {
            list.remove(&mut things, places[place], order);
        }
        assert_eq!((list.oldest(), list.youngest()), (None, None));
        for place in places {
            assert!(things.remove(place).is_some());
            assert!(things.remove(place).is_none());
        }
        assert_eq!((things.places.capacity(), things.taken()), (0, vec![]));
    }
}
