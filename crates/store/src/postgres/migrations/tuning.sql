-- How PostgreSQL keeps these tables; not part of what they mean. A database that does not know these settings goes without.
-- Rows that are updated in place need room on their page, and tables through which much passes are cleaned often.
ALTER TABLE workflow_runs SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE workflow_step_runs SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE work SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);
ALTER TABLE timers SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE mail SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE counters SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE writers SET (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE nodes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE step_values SET (autovacuum_vacuum_insert_scale_factor = 0.2);
ALTER TABLE workflow_events SET (autovacuum_vacuum_insert_scale_factor = 0.2);
