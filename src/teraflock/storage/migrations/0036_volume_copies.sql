-- Copies of volumes on other hosts, from which they are recovered when their own host is lost.

ALTER TABLE volume ADD COLUMN disk_id TEXT NOT NULL DEFAULT '';     -- its id on the engine
ALTER TABLE volume ADD COLUMN copied BIGINT NOT NULL DEFAULT 0;     -- whether it is copied on a schedule
UPDATE volume SET disk_id = id;

CREATE TABLE volume_copy (
    id TEXT PRIMARY KEY,            -- its id on the engine
    volume_id TEXT NOT NULL,
    source_id TEXT NOT NULL,        -- what was copied
    host_id TEXT NOT NULL,          -- where it is
    site TEXT NOT NULL,
    source_host_id TEXT NOT NULL,   -- making: where the source is
    state TEXT NOT NULL,            -- making, ready or removing
    size_bytes BIGINT NOT NULL,     -- of its files
    disk_bytes BIGINT NOT NULL,     -- of the volume
    made_at_us BIGINT NOT NULL,     -- when the volume had this content
    touched_at_us BIGINT NOT NULL   -- making: when the process that makes it was last known to work on it
);
CREATE INDEX volume_copy_of_volume ON volume_copy (volume_id);
