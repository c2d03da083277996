-- Host labels, launches that wait for room, drains with a deadline, and copies that a lost host may still run.

CREATE TABLE host_label (
    host_id TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (host_id, key)
);

ALTER TABLE host_gpu ADD COLUMN near TEXT NOT NULL DEFAULT '';  -- cards with the same text are connected directly; empty: unknown
ALTER TABLE host ADD COLUMN drain_at_us BIGINT;                 -- draining: when instances that may move are moved; NULL: never

CREATE TABLE queued_launch (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,             -- of the instances; empty: generated when it starts
    launch TEXT NOT NULL,           -- JSON, the order; emptied when it no longer waits
    actor TEXT NOT NULL,            -- JSON, who asked for it, with the limits of the key
    gpu TEXT NOT NULL,
    gpus BIGINT NOT NULL,
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    instances BIGINT NOT NULL,
    priority BIGINT NOT NULL,
    state TEXT NOT NULL,            -- waiting, launched, cancelled, failed
    reason TEXT NOT NULL,           -- why it waits or failed
    instance_ids TEXT NOT NULL,     -- JSON, once it was launched
    created_by TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    ended_at_us BIGINT
);
CREATE INDEX queued_launch_by_state ON queued_launch (state, id);
CREATE INDEX queued_launch_by_project ON queued_launch (project_id, state, id);

-- Hosts that are kept free for the queued launch that is next. Other launches do not use them.
CREATE TABLE host_reservation (
    host_id TEXT PRIMARY KEY,
    queued_id TEXT NOT NULL
);

-- Copies of instances that a lost host may still run, although the instance was created again elsewhere. The address is
-- not given to anyone until the host is back and the copy is removed.
CREATE TABLE left_behind (
    instance_id TEXT NOT NULL,
    host_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    address TEXT NOT NULL,
    left_at_us BIGINT NOT NULL,
    PRIMARY KEY (instance_id, host_id)
);
CREATE INDEX left_behind_by_project ON left_behind (project_id);
CREATE INDEX left_behind_by_host ON left_behind (host_id);
