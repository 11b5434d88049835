-- The epoch grows with each change of an organisation's grants; decisions made under an older epoch are refused.
CREATE TABLE organisations (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  epoch INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO organisations (id, name, created_at) VALUES (1, 'default', 0);

-- Ids are not reused when the definition of a test run is removed: definitions are cached by id.
CREATE TABLE workflow_definitions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  workflow TEXT NOT NULL,
  org INTEGER NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  source TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  deleted_at INTEGER,
  test INTEGER NOT NULL,
  UNIQUE (workflow, version)
) STRICT;
CREATE UNIQUE INDEX workflow_definitions_living ON workflow_definitions (org, name, version) WHERE deleted_at IS NULL;

-- A plain step changes no indexed column here.
CREATE TABLE workflow_runs (
  id INTEGER PRIMARY KEY,
  public_id TEXT NOT NULL UNIQUE,
  org INTEGER NOT NULL,
  definition INTEGER NOT NULL,
  status TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  test INTEGER NOT NULL,
  secret BLOB NOT NULL,
  parent_run INTEGER,
  parent_step TEXT,
  parent_attempt INTEGER,
  depth INTEGER NOT NULL,
  place TEXT,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  purge_at INTEGER,
  hash BLOB NOT NULL,
  state TEXT NOT NULL
) STRICT;
CREATE INDEX workflow_runs_of_org ON workflow_runs (org);
CREATE INDEX workflow_runs_of_definition ON workflow_runs (org, definition, id);
CREATE INDEX workflow_runs_unfinished ON workflow_runs (org, status, id) WHERE finished_at IS NULL;
CREATE INDEX workflow_runs_to_purge ON workflow_runs (purge_at) WHERE purge_at IS NOT NULL;

-- The log: one row per commit. Positions are in commit order and never reused; the writer assigns them.
CREATE TABLE workflow_events (
  position INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  version INTEGER NOT NULL,
  at INTEGER NOT NULL,
  facts TEXT NOT NULL,
  hash BLOB NOT NULL,
  UNIQUE (run, version)
) STRICT;

CREATE TABLE workflow_step_runs (
  run INTEGER NOT NULL,
  step TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  status TEXT NOT NULL,
  since INTEGER NOT NULL,
  ended_at INTEGER,
  input INTEGER,
  output INTEGER,
  state TEXT NOT NULL,
  PRIMARY KEY (run, step, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE step_values (
  run INTEGER NOT NULL,
  id INTEGER NOT NULL,
  payload TEXT NOT NULL,
  PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

-- Only attempts that are ready or claimed, so the table stays small.
CREATE TABLE work (
  run INTEGER NOT NULL,
  step TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  org INTEGER NOT NULL,
  kind TEXT NOT NULL,
  ready_at INTEGER NOT NULL,
  node INTEGER,
  PRIMARY KEY (run, step, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX work_ready ON work (org, ready_at) WHERE node IS NULL;
CREATE INDEX work_claimed ON work (node) WHERE node IS NOT NULL;

CREATE TABLE timers (
  run INTEGER NOT NULL,
  key TEXT NOT NULL,
  due INTEGER NOT NULL,
  PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_due ON timers (due);

-- Ids are not reused: removing a message twice must not remove another message.
CREATE TABLE mail (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run INTEGER NOT NULL,
  key TEXT NOT NULL,
  body TEXT NOT NULL,
  UNIQUE (run, key)
) STRICT;

CREATE TABLE outbox (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  key TEXT NOT NULL,
  body TEXT NOT NULL,
  due INTEGER NOT NULL,
  UNIQUE (run, key)
) STRICT;
CREATE INDEX outbox_due ON outbox (due);

CREATE TABLE unique_keys (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  run INTEGER NOT NULL,
  digest TEXT NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX unique_keys_of_run ON unique_keys (run);

-- Concurrency groups: runs that hold a slot in a group or are queued for one, and how many hold one.
CREATE TABLE places (
  key TEXT NOT NULL,
  run INTEGER NOT NULL,
  held INTEGER NOT NULL,
  PRIMARY KEY (key, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX places_in_order ON places (held, key, run);
CREATE TABLE counters (
  key TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The highest position of any purged log row.
CREATE TABLE purged (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  position INTEGER NOT NULL
) STRICT;
INSERT INTO purged (id, position) VALUES (1, 0);

-- Views for people with an SQL shell.
CREATE VIEW runs AS
  SELECT r.public_id AS run, d.name AS workflow, d.version AS workflow_version, r.status, r.created_by,
         datetime(r.created_at / 1000, 'unixepoch') AS created, datetime(r.finished_at / 1000, 'unixepoch') AS finished
  FROM workflow_runs r LEFT JOIN workflow_definitions d ON d.id = r.definition;
CREATE VIEW steps AS
  SELECT r.public_id AS run, s.step, s.attempt, s.status, datetime(s.since / 1000, 'unixepoch') AS since,
         i.payload AS input, o.payload AS output
  FROM workflow_step_runs s JOIN workflow_runs r ON r.id = s.run
  LEFT JOIN step_values i ON i.run = s.run AND i.id = s.input
  LEFT JOIN step_values o ON o.run = s.run AND o.id = s.output;
CREATE VIEW events AS
  SELECT r.public_id AS run, e.version, datetime(e.at / 1000, 'unixepoch') AS at, f.value ->> 'type' AS type,
         f.value ->> 'step' AS step, f.value AS fact
  FROM workflow_events e JOIN workflow_runs r ON r.id = e.run, json_each(e.facts) f;
