-- The run at the top of a tree of child runs. The children of runs that were there before count as roots of their own.
ALTER TABLE workflow_runs ADD COLUMN root INTEGER;
CREATE INDEX workflow_runs_open_in_tree ON workflow_runs (root, parent_run)
  WHERE root IS NOT NULL AND finished_at IS NULL;
