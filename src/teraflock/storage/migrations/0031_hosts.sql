-- Whether the operator drains a host. `state` says what was seen, so a draining host that goes away returns as draining.
ALTER TABLE host ADD COLUMN drained BIGINT NOT NULL DEFAULT 0;
UPDATE host SET drained = 1 WHERE state = 'draining';

-- Copies of disks on other hosts, from which instances start again when their own host is lost.
CREATE TABLE disk_copy (
    id TEXT PRIMARY KEY,            -- the id of its image on the engine
    instance_id TEXT NOT NULL,
    host_id TEXT NOT NULL,          -- where it is
    site TEXT NOT NULL,
    source_site TEXT NOT NULL,      -- where the instance was
    state TEXT NOT NULL,            -- making or ready
    size_bytes BIGINT NOT NULL,
    made_at_us BIGINT NOT NULL,     -- when the disk had this content
    touched_at_us BIGINT NOT NULL   -- making: when the process that makes it was last known to work on it
);
CREATE INDEX disk_copy_by_instance ON disk_copy (instance_id);
