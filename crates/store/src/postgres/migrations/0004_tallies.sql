-- Signed tallies of runs, definitions, records and audit rows, one per writer. They are kept once every node that is
-- alive keeps them: nodes of older programs join without saying so.
CREATE TABLE tallies (
  writer INTEGER PRIMARY KEY,
  number BIGINT NOT NULL,
  body BYTEA NOT NULL
);
ALTER TABLE nodes ADD COLUMN tallies BOOLEAN NOT NULL DEFAULT false;
