//! Which known word someone may have meant.

/// The words of `known` that are few changes away from `word`, nearest first, at most three.
pub fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let last = |word: &str| word.rsplit('.').next().unwrap_or_default().to_owned();
    let mut found: Vec<_> = known
        .into_iter()
        .map(|candidate| {
            // A right key in the wrong table is as near as a misspelled one.
            let misplaced = if last(candidate) == last(word) { 0 } else { usize::MAX };
            (distance(word, candidate).min(misplaced), candidate)
        })
        .filter(|(changes, candidate)| *changes <= 1 + candidate.len() / 4)
        .collect();
    found.sort_unstable();
    let worst = found.first().map_or(0, |(best, _)| best + 1);
    found.retain(|(changes, _)| *changes <= worst);
    found.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// Insertions, deletions and substitutions between two words.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(a != *b)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_near() {
        let known = ["server.listen", "server.hosts", "log"];

        assert_eq!(near("server.lisen", known), ["server.listen"]);
        assert_eq!(near("lg", known), ["log"]);
    }

    #[test]
    fn a_key_in_the_wrong_table_is_near() {
        assert_eq!(near("sessions.listen", ["server.listen", "log"]), ["server.listen"]);
    }

    #[test]
    fn what_resembles_nothing_has_no_neighbour() {
        assert!(near("color", ["server.listen", "log"]).is_empty());
    }
}
