-- Streams of an organisation read its own part of the log. The index ends in the position, which is the row id.
ALTER TABLE workflow_events ADD COLUMN org INTEGER;
UPDATE workflow_events SET org = (SELECT org FROM workflow_runs WHERE id = workflow_events.run);
CREATE INDEX workflow_events_of_org ON workflow_events (org);
