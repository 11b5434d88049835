-- Rows that were brought from a store with several writers keep their writer, and with it their chain of hashes. Those
-- written here are the first writer's.
ALTER TABLE audit ADD COLUMN writer INTEGER NOT NULL DEFAULT 0;
CREATE INDEX audit_of_writer ON audit (org, writer, id);
