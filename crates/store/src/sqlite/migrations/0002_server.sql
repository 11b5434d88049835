-- Tables and columns for the server: the principal that runs act as, labels, gates, records and the audit trail.
-- Existing rows get `*`: they belong to any user who could open the directory.
ALTER TABLE workflow_definitions ADD COLUMN author TEXT NOT NULL DEFAULT '*';
ALTER TABLE workflow_runs ADD COLUMN acts_as TEXT NOT NULL DEFAULT '*';
ALTER TABLE workflow_runs ADD COLUMN labels TEXT;
ALTER TABLE workflow_runs ADD COLUMN erased_at INTEGER;
-- Digests of the payloads written in the same commit; older rows have none.
ALTER TABLE workflow_events ADD COLUMN payloads TEXT NOT NULL DEFAULT '';

-- Steps that wait for a person.
CREATE TABLE gates (
  run INTEGER NOT NULL,
  step TEXT NOT NULL,
  org INTEGER NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;
CREATE INDEX gates_of_org ON gates (org, run, step);
INSERT INTO gates (run, step, org, since)
  SELECT s.run, s.step, r.org, s.since FROM workflow_step_runs s JOIN workflow_runs r ON r.id = s.run
  WHERE r.finished_at IS NULL AND s.state ->> 'phase' IN ('gate', 'unsure');

-- Labels as `name=value`, for searching runs; the row of the run has them too.
CREATE TABLE run_labels (
  label TEXT NOT NULL,
  run INTEGER NOT NULL,
  PRIMARY KEY (label, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_labels_of_run ON run_labels (run);

-- Everything that is not a run: users, roles, keys, sessions, schedules, … Only the engine interprets them.
CREATE TABLE records (
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  org INTEGER NOT NULL,
  key TEXT NOT NULL,
  due INTEGER,
  body TEXT NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (kind, id),
  UNIQUE (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX records_of_org ON records (org, kind, key);
CREATE INDEX records_due ON records (kind, due) WHERE due IS NOT NULL;

-- The audit trail. Each row's hash covers the organisation's previous row.
CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  org INTEGER NOT NULL,
  at INTEGER NOT NULL,
  by TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  detail TEXT NOT NULL,
  hash BLOB NOT NULL
) STRICT;
CREATE INDEX audit_of_org ON audit (org, id);
