-- Storage settings for PostgreSQL. They are optional: a database that does not know them works without.
-- Rows that are updated in place need free space on their page, and tables with a high turnover are vacuumed often.
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
ALTER TABLE tallies SET (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
