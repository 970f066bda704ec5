//! Texts that are almost JSON, for tests that compare with `serde_json`.

/// Alters each text at random, with tokens of JSON for the most part; returns those that are UTF-8.
pub(crate) fn altered<'s>(seeds: &'s [&str], rounds: usize) -> impl Iterator<Item = String> + 's {
    let alphabet = b"{}[]\",:\\ud8dc0019eE+-.tfn \n\x01a";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % bound
    };
    (0..rounds).filter_map(move |round| {
        let mut bytes = seeds[round % seeds.len()].as_bytes().to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = alphabet[random(alphabet.len())],
                1 => bytes.insert(at, alphabet[random(alphabet.len())]),
                _ => drop(bytes.remove(at)),
            }
        }
        String::from_utf8(bytes).ok()
    })
}
