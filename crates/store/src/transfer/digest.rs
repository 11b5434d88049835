//! A digest over the rows of a table that does not depend on the database they are in.

use super::{Cell, CopiedTable, Row};
use crate::hash::hex;
use sha2::{Digest as _, Sha256};

#[derive(Default)]
pub struct Digest {
    rows: u64,
    hash: Sha256,
}

impl Digest {
    /// Adds a row; returns its approximate size in bytes.
    pub fn add(&mut self, row: &Row) -> usize {
        self.rows += 1;
        row.iter().map(|cell| self.cell(cell)).sum()
    }

    /// Hashes each cell with its type and length, so that two different rows never hash the same bytes.
    fn cell(&mut self, cell: &Cell) -> usize {
        let number;
        let (tag, bytes): (u8, &[u8]) = match cell {
            Cell::Null => (0, &[]),
            Cell::Int(value) => {
                number = value.to_be_bytes();
                (1, &number)
            }
            Cell::Text(text) => (2, text.as_bytes()),
            Cell::Bytes(bytes) => (3, bytes),
        };
        self.hash.update([tag]);
        self.hash.update((bytes.len() as u64).to_be_bytes());
        self.hash.update(bytes);
        bytes.len()
    }

    pub fn finish(self, table: &'static str) -> CopiedTable {
        CopiedTable { table, rows: self.rows, digest: hex(&self.hash.finalize()) }
    }
}
