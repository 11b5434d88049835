//! Which net of a channel runs above which, and so on which track.

/// Nets times their ends in one channel; beyond that they are packed without weighing their crossings.
const MOST_WEIGHED: usize = 400_000;

/// The columns where a net comes from above and where it goes on below, from left to right.
pub struct Span {
    top: Vec<i64>,
    bottom: Vec<i64>,
    low: i64,
    high: i64,
}

impl Span {
    pub fn new(mut top: Vec<i64>, mut bottom: Vec<i64>) -> Self {
        top.sort_unstable();
        bottom.sort_unstable();
        let ends = || top.iter().chain(&bottom).copied();
        let (low, high) = (ends().min().unwrap_or(0), ends().max().unwrap_or(0));
        Self { top, bottom, low, high }
    }

    /// What it costs to run above `other`: a crossing each, and far more where the two would overlap.
    fn cost_above(&self, other: &Span) -> i64 {
        const OVERLAP: i64 = 100_000;
        let inside = |columns: &[i64], span: &Span| {
            let from = columns.partition_point(|&x| x <= span.low);
            let to = columns.partition_point(|&x| x < span.high);
            to.saturating_sub(from) as i64
        };
        let overlap = if self.overlap_below(other).is_some() { OVERLAP } else { 0 };
        inside(&self.bottom, other) + inside(&other.top, self) + overlap
    }

    /// A column where this net, run above `other`, would come down on top of it.
    fn overlap_below(&self, other: &Span) -> Option<i64> {
        if self.high < other.low || other.high < self.low {
            return None;
        }
        self.bottom.iter().copied().find(|x| other.top.binary_search(x).is_ok())
    }
}

/// An order from the top, and a place where even that order draws one net over another.
pub struct Arrangement {
    nets: Vec<usize>,
    weighed: bool,
    pub overlap: Option<(usize, i64)>,
}

/// Repeatedly takes the net that crosses the fewest remaining nets when it runs above them all.
pub fn arrange(spans: &[Span]) -> Arrangement {
    let mut left: Vec<usize> = (0..spans.len()).filter(|&n| spans[n].low < spans[n].high).collect();
    left.sort_by_key(|&net| (spans[net].low, spans[net].high));
    let ends: usize = left.iter().map(|&net| spans[net].top.len() + spans[net].bottom.len()).sum();
    if left.len() * ends > MOST_WEIGHED {
        return Arrangement { nets: left, weighed: false, overlap: None };
    }
    let weigh = |a: usize, b: usize| spans[a].cost_above(&spans[b]) - spans[b].cost_above(&spans[a]);
    let mut scores = vec![0; spans.len()];
    for &a in &left {
        scores[a] = left.iter().filter(|&&b| b != a).map(|&b| weigh(a, b)).sum();
    }
    let mut order = Arrangement { nets: Vec::with_capacity(left.len()), weighed: true, overlap: None };
    while let Some(at) = (0..left.len()).min_by_key(|&at| scores[left[at]]) {
        let net = left.remove(at);
        for &other in &left {
            scores[other] -= weigh(other, net);
            if let Some(column) = spans[net].overlap_below(&spans[other]) {
                order.overlap = order.overlap.or(Some((net, column)));
            }
        }
        order.nets.push(net);
    }
    order
}

impl Arrangement {
    /// The track of each net that needs one, and how many there are.
    pub fn levels(&self, spans: &[Span], apart: i64) -> (Vec<Option<usize>>, usize) {
        let mut levels = vec![None; spans.len()];
        let mut tracks: Vec<Vec<(i64, i64)>> = Vec::new();
        for &net in &self.nets {
            let (low, high) = (spans[net].low - apart, spans[net].high + apart);
            let meets = |track: &[(i64, i64)]| track.iter().any(|&(l, h)| l <= high && low <= h);
            // Unweighed nets come from left to right, so only the last on a track can be in the way.
            let free = |track: &[(i64, i64)]| track.last().is_none_or(|last| last.1 < low);
            let level = if self.weighed {
                tracks.iter().rposition(|track| meets(track)).map_or(0, |level| level + 1)
            } else {
                tracks.iter().position(|track| free(track)).unwrap_or(tracks.len())
            };
            if level == tracks.len() {
                tracks.push(Vec::new());
            }
            tracks[level].push((spans[net].low, spans[net].high));
            levels[net] = Some(level);
        }
        (levels, tracks.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spans: &[(&[i64], &[i64])], expected: &[Option<usize>]) {
        let spans: Vec<Span> = spans.iter().map(|(top, bottom)| Span::new(top.to_vec(), bottom.to_vec())).collect();
        let order = arrange(&spans);
        assert_eq!(order.overlap, None);
        assert_eq!(order.levels(&spans, 0).0, expected);
    }

    #[test]
    fn nets_that_do_not_meet_share_a_track_and_straight_ones_need_none() {
        check(&[(&[0], &[4]), (&[6], &[6]), (&[8], &[12])], &[Some(0), None, Some(0)]);
    }

    #[test]
    fn parallel_nets_are_stacked_so_that_they_do_not_cross() {
        check(&[(&[0], &[10]), (&[4], &[14])], &[Some(1), Some(0)]);
        check(&[(&[10], &[0]), (&[14], &[4])], &[Some(0), Some(1)]);
    }

    #[test]
    fn a_net_that_leaves_above_where_another_arrives_runs_higher() {
        check(&[(&[0], &[5]), (&[5], &[9])], &[Some(1), Some(0)]);
    }

    #[test]
    fn two_nets_that_swap_their_columns_are_reported_as_an_overlap() {
        let spans = [Span::new(vec![0], vec![9]), Span::new(vec![9], vec![0])];
        assert!(arrange(&spans).overlap.is_some());
    }
}
