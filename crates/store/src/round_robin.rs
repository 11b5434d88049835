//! Round robin between organisations, the same for every database.

/// Returns the first item of each list, then the second of each, and so on, up to `limit` items.
pub fn interleave<T>(each: Vec<Vec<T>>, limit: usize) -> Vec<T> {
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
    use super::interleave;

    #[test]
    fn a_long_list_does_not_starve_a_short_one() {
        assert_eq!(interleave(vec![vec![1, 2, 3, 4], vec![10], vec![]], 4), [1, 10, 2, 3]);
        assert_eq!(interleave(vec![vec![1, 2], vec![10, 11]], 1), [1]);
        assert!(interleave::<u8>(vec![], 3).is_empty());
    }
}
