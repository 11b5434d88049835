//! Which positions of the log this process wrote. A row of `writers` belongs to one process at a time, so the positions
//! written meanwhile are that process's own.

use crate::Position;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Times of holding a row that are remembered for each writer. Readers of the log are rarely behind by more than one.
const REMEMBERED: usize = 16;

/// The positions written by this process.
#[derive(Clone, Default)]
pub struct Own(Arc<Mutex<HashMap<i32, Vec<Span>>>>);

/// Positions of one writer: all after `after`, up to `last` if the row was lost.
struct Span {
    after: i64,
    last: Option<i64>,
}

impl Own {
    /// This process took the row of a writer, which was at this position.
    pub fn took(&self, writer: i32, position: i64) {
        let mut spans = self.lock();
        let spans = spans.entry(writer).or_default();
        if spans.len() >= REMEMBERED {
            spans.remove(0);
        }
        spans.push(Span { after: position, last: None });
    }

    /// This process took a row again that it still held, after its connection was lost.
    pub fn kept(&self, writer: i32, position: i64) {
        let mut spans = self.lock();
        if let Some(span) = spans.get_mut(&writer).and_then(|spans| spans.last_mut()) {
            // Commits whose answer was lost are among them.
            span.last = None;
            return;
        }
        drop(spans);
        self.took(writer, position);
    }

    /// The connection that held the row is gone; the last commit known to be written was this one.
    pub fn lost(&self, writer: i32, last: i64) {
        if let Some(span) = self.lock().get_mut(&writer).and_then(|spans| spans.last_mut()) {
            span.last = Some(last);
        }
    }

    pub fn has(&self, position: Position) -> bool {
        let number = position.number;
        let within = |span: &Span| number > span.after && span.last.is_none_or(|last| number <= last);
        self.lock().get(&position.writer).is_some_and(|spans| spans.iter().any(within))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Vec<Span>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_belong_to_the_process_that_held_the_row_when_they_were_written() {
        let own = Own::default();
        let has = |writer, from: i64, to: i64| -> Vec<i64> {
            (from..=to).filter(|number| own.has(Position::new(writer, *number))).collect()
        };
        assert_eq!(has(1, 1, 9), [0; 0]);
        own.took(1, 3);
        assert_eq!((has(1, 1, 6), has(2, 1, 9)), (vec![4, 5, 6], vec![]));
        own.lost(1, 5);
        assert_eq!(has(1, 1, 9), [4, 5]);
        // Its last commit was written although the answer was lost.
        own.kept(1, 6);
        assert_eq!(has(1, 1, 8), [4, 5, 6, 7, 8]);
        own.lost(1, 7);
        // Another process had the row.
        own.took(1, 20);
        assert_eq!(has(1, 1, 22), [4, 5, 6, 7, 21, 22]);
        (0..100).for_each(|n| own.took(1, 100 * n));
        assert!(!own.has(Position::new(1, 5)), "the oldest are forgotten");
    }
}
