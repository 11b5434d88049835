//! Suggestions for "did you mean", shared by all messages about an unknown name.

/// Longer names get no suggestion: the comparison costs the product of both lengths.
const MAX_LENGTH: usize = 64;

/// The candidate nearest to `name`, if it is within one edit for a short name or up to three for a long one. Case is
/// ignored, swapping two adjacent letters is one edit, and the first of equally near candidates wins.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = letters(name)?;
    let edits = (name.len() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(&name, &letters(candidate)?, edits)?, candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn letters(name: &str) -> Option<Vec<char>> {
    if name.len() > MAX_LENGTH * 4 {
        return None;
    }
    let letters: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    (!letters.is_empty() && letters.len() <= MAX_LENGTH).then_some(letters)
}

/// The number of insertions, deletions, replacements and swaps of adjacent letters between `a` and `b`; `None` if it
/// exceeds `limit`, or if nothing of the shorter name would be left.
fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    let distance = last[b.len()];
    (distance <= limit && distance < a.len().min(b.len())).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(name: &str, expected: Option<&str>) {
        let candidates = ["charge", "build", "send-receipt", "len", "lower", "a", "Überweisung"];
        assert_eq!(nearest(name, candidates), expected, "{name}");
    }

    #[test]
    fn a_typo_finds_the_intended_name() {
        check("chrage", Some("charge"));
        check("biuld", Some("build"));
        check("Build", Some("build"));
        check("send_reciept", Some("send-receipt"));
        check("lenn", Some("len"));
        check("überweisun", Some("Überweisung"));
    }

    #[test]
    fn a_name_unlike_any_candidate_gets_no_suggestion() {
        check("refund", None);
        check("", None);
        check("b", None);
        check("xyz", None);
        check(&"charge".repeat(1_000), None);
    }

    proptest! {
        #[test]
        fn one_swap_anywhere_in_a_long_name_is_found(at in 0usize..10) {
            let mut letters: Vec<char> = "abcdefghijk".chars().collect();
            letters.swap(at, at + 1);
            let name: String = letters.into_iter().collect();
            prop_assert_eq!(nearest(&name, ["zzz", "abcdefghijk"]), Some("abcdefghijk"));
        }

        #[test]
        fn no_name_makes_it_panic(name in ".{0,80}", candidate in ".{0,80}") {
            nearest(&name, [candidate.as_str()]);
        }
    }
}
