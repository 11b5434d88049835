-- Rows transferred from a store with several writers keep their writer, and with it their hash chain. Rows written here
-- belong to writer 0.
ALTER TABLE audit ADD COLUMN writer INTEGER NOT NULL DEFAULT 0;
CREATE INDEX audit_of_writer ON audit (org, writer, id);
