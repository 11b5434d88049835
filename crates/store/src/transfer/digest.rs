//! A hash over the rows of a table, the same whichever database they are in.

use super::{Cell, Row, Taken};
use sha2::{Digest as _, Sha256};
use std::fmt::Write;

#[derive(Default)]
pub struct Digest {
    rows: u64,
    hash: Sha256,
}

impl Digest {
    /// Takes a row in; returns about how much room it takes.
    pub fn add(&mut self, row: &Row) -> usize {
        self.rows += 1;
        row.iter().map(|cell| self.cell(cell)).sum()
    }

    /// Each with its sort and its length: no two rows look alike.
    fn cell(&mut self, cell: &Cell) -> usize {
        let number;
        let (sort, bytes): (u8, &[u8]) = match cell {
            Cell::Null => (0, &[]),
            Cell::Int(value) => {
                number = value.to_be_bytes();
                (1, &number)
            }
            Cell::Text(text) => (2, text.as_bytes()),
            Cell::Bytes(bytes) => (3, bytes),
        };
        self.hash.update([sort]);
        self.hash.update((bytes.len() as u64).to_be_bytes());
        self.hash.update(bytes);
        bytes.len()
    }

    pub fn taken(self, table: &'static str) -> Taken {
        let mut digest = String::with_capacity(64);
        for byte in self.hash.finalize() {
            let _ = write!(digest, "{byte:02x}");
        }
        Taken { table, rows: self.rows, digest }
    }
}
