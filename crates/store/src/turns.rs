//! Fairness between organisations, the same for every database.

/// The first of each, then the second of each, and so on, up to `limit`.
pub fn in_turn<T>(each: Vec<Vec<T>>, limit: usize) -> Vec<T> {
    let mut lists: Vec<_> = each.into_iter().map(Vec::into_iter).collect();
    let mut taken = Vec::new();
    while taken.len() < limit {
        let before = taken.len();
        for list in &mut lists {
            if taken.len() < limit {
                taken.extend(list.next());
            }
        }
        if taken.len() == before {
            break;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::in_turn;

    #[test]
    fn a_long_list_does_not_keep_a_short_one_waiting() {
        assert_eq!(in_turn(vec![vec![1, 2, 3, 4], vec![10], vec![]], 4), [1, 10, 2, 3]);
        assert_eq!(in_turn(vec![vec![1, 2], vec![10, 11]], 1), [1]);
        assert!(in_turn::<u8>(vec![], 3).is_empty());
    }
}
