-- Runs: commands that the server carries to their end on instances that it launches and deletes.

CREATE TABLE run (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    wanted TEXT NOT NULL,           -- `done` or `cancelled`; only requests of tenants write it
    phase TEXT NOT NULL,
    spec TEXT NOT NULL,             -- JSON: what is fixed when it is created, without the values of secrets
    created_at_us BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    since_us BIGINT NOT NULL,
    instance_id TEXT NOT NULL,      -- of this attempt; empty: none
    instances TEXT NOT NULL,        -- JSON: all instances that it ever had
    image_id TEXT NOT NULL,
    outcome TEXT NOT NULL,          -- the phase after `ending`
    keeps_instance BIGINT NOT NULL, -- 1: stop it instead of deleting it, because its outputs could not be copied
    exit_code BIGINT,
    problem TEXT NOT NULL,
    progress TEXT NOT NULL,         -- JSON
    log_guest_bytes BIGINT NOT NULL,
    log_bytes BIGINT NOT NULL,
    outputs_bytes BIGINT,
    pulled_at_us BIGINT,
    away_since_us BIGINT,
    running_since_us BIGINT,
    ended_at_us BIGINT,
    due_at_us BIGINT NOT NULL,
    worker TEXT NOT NULL DEFAULT '',        -- the process that works on it
    worker_until_us BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX run_of_project ON run (project_id, id);
CREATE INDEX run_due ON run (due_at_us) WHERE phase NOT IN ('done', 'failed', 'cancelled');

CREATE TABLE run_secret (
    run_id TEXT NOT NULL,
    name TEXT NOT NULL,
    sealed TEXT NOT NULL,           -- encrypted with the installation's key
    PRIMARY KEY (run_id, name)
);

CREATE TABLE run_checkpoint (
    id TEXT PRIMARY KEY,            -- also the name of its file
    run_id TEXT NOT NULL,
    name TEXT NOT NULL,
    mark TEXT NOT NULL,
    written_ns BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    digest TEXT NOT NULL,
    pulled_at_us BIGINT NOT NULL,
    UNIQUE (run_id, name)
);
