-- Signed tallies of runs, definitions, records and audit rows, one per writer. The migration tallies what is there.
CREATE TABLE tallies (
  writer INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
