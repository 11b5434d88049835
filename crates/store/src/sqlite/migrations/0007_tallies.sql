-- Signed tallies of runs, definitions, records and audit rows, one per writer. The first one is made when the store is
-- opened.
CREATE TABLE tallies (
  writer INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
