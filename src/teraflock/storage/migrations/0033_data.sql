-- Datasets, volumes and sweeps.

CREATE TABLE dataset (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,            -- `uploading`, `ready` or `deleting`
    digest TEXT NOT NULL,           -- SHA-256 of its manifest
    size_bytes BIGINT NOT NULL,
    files BIGINT NOT NULL,
    chunks BIGINT NOT NULL,
    created_at_us BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    ready_at_us BIGINT,
    used_at_us BIGINT NOT NULL,
    UNIQUE (project_id, name),
    UNIQUE (project_id, digest)
);

CREATE TABLE volume (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,       -- the wanted size
    made_bytes BIGINT NOT NULL,       -- its size on the engine; 0: it does not exist there yet
    snapshots_bytes BIGINT NOT NULL,
    site TEXT NOT NULL,
    host_id TEXT NOT NULL,            -- empty: no instance had it yet
    instance_id TEXT NOT NULL,        -- the instance that has it, until the engine has taken it away
    path TEXT NOT NULL,               -- where the instance has it
    detaching BIGINT NOT NULL,
    deleting BIGINT NOT NULL,
    restore_from TEXT NOT NULL,       -- the snapshot that replaces its content
    problem TEXT NOT NULL,
    sequence BIGINT NOT NULL,         -- counts events
    created_at_us BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    UNIQUE (project_id, name)
);
CREATE INDEX volume_of_instance ON volume (instance_id) WHERE instance_id <> '';

CREATE TABLE volume_snapshot (
    id TEXT PRIMARY KEY,
    volume_id TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,              -- `making`, `ready` or `deleting`
    size_bytes BIGINT NOT NULL,
    created_at_us BIGINT NOT NULL,
    UNIQUE (volume_id, name)
);

ALTER TABLE instance ADD COLUMN volumes TEXT NOT NULL DEFAULT '[]';  -- JSON: the volumes that it should have

ALTER TABLE run ADD COLUMN sweep TEXT NOT NULL DEFAULT '';  -- the runs of a sweep have the same text
CREATE INDEX run_of_sweep ON run (project_id, sweep) WHERE sweep <> '';
