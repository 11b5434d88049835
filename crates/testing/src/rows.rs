//! Reads and changes rows past the store's contract, as someone with a copy of the data or access to the database
//! can.

use crate::TestStore;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

impl TestStore {
    /// Changes something behind the store's back; how many rows were. Written for the embedded store.
    pub fn sql(&self, sql: &str) -> u64 {
        match self.schema() {
            Some(schema) => schema.ask(&sql.replace("zeroblob(32)", "decode(repeat('00', 32), 'hex')")).1,
            None => self.sqlite().execute(sql, []).unwrap() as u64,
        }
    }

    /// Every row of every table: the table's name, and all that is in the row.
    pub fn rows(&self) -> Vec<(String, Vec<u8>)> {
        let Some(schema) = self.schema() else { return sqlite_rows(&self.sqlite()) };
        let of_schema = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema ORDER BY 1";
        let mut all = Vec::new();
        for table in schema.ask(of_schema).0 {
            // Bytes as they are, if they can be read.
            let sql = format!("SET bytea_output = 'escape'; SELECT t::text FROM \"{table}\" t ORDER BY 1");
            all.extend(schema.ask(&sql).0.into_iter().map(|row| (table.clone(), row.into_bytes())));
        }
        all
    }

    fn sqlite(&self) -> Connection {
        Connection::open(self.data().join("stepwell.db")).unwrap()
    }
}

fn sqlite_rows(db: &Connection) -> Vec<(String, Vec<u8>)> {
    let mut tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut all = Vec::new();
    for table in tables {
        let mut rows = db.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let mut bytes = Vec::new();
            for column in 0..columns {
                match row.get_ref(column).unwrap() {
                    ValueRef::Text(text) => bytes.extend_from_slice(text),
                    ValueRef::Blob(blob) => bytes.extend_from_slice(blob),
                    other => bytes.extend(format!("{other:?}").into_bytes()),
                }
                bytes.push(b' ');
            }
            all.push((table.clone(), bytes));
        }
    }
    all
}
