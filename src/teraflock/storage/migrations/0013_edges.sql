-- Commands that run again, time limits, the result of user-data, and labels that change and can be searched.

ALTER TABLE instance ADD COLUMN labels TEXT NOT NULL DEFAULT '';          -- JSON object; empty: still in `spec` only
ALTER TABLE instance ADD COLUMN command_run BIGINT NOT NULL DEFAULT 0;    -- counts the starts of its command
ALTER TABLE instance ADD COLUMN stop_at_us BIGINT;                        -- when its time limit ends; NULL: it has none, or does not run
ALTER TABLE instance ADD COLUMN stop_told BIGINT NOT NULL DEFAULT 0;      -- 1: the event before that time was left
ALTER TABLE instance ADD COLUMN user_data_waits BIGINT NOT NULL DEFAULT 0; -- 1: the end of its user-data is not known yet
ALTER TABLE instance ADD COLUMN user_data_exit_code BIGINT;

CREATE INDEX instance_by_phase ON instance (project_id, phase, id);
CREATE INDEX instance_stopping_at ON instance (stop_at_us) WHERE stop_at_us IS NOT NULL;
CREATE INDEX instance_gone_by_name ON instance (project_id, name, id) WHERE phase = 'gone';

-- The labels of each instance once more, one row each, for searching.
CREATE TABLE instance_label (
    instance_id TEXT NOT NULL REFERENCES instance (id),
    project_id TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (instance_id, key)
);
CREATE INDEX instance_label_by_value ON instance_label (project_id, key, value, instance_id);
