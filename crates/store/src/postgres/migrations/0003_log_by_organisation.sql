-- Streams of an organisation read its own part of the log. Nodes of the previous version leave the column empty.
ALTER TABLE workflow_events ADD COLUMN org BIGINT;
UPDATE workflow_events e SET org = r.org FROM workflow_runs r WHERE r.id = e.run;
CREATE INDEX workflow_events_of_org ON workflow_events (org, writer, position);
