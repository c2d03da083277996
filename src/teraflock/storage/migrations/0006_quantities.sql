-- What is measured besides the time something is held: what snapshots keep, what leaves the house, and where it was.

ALTER TABLE host ADD COLUMN region TEXT NOT NULL DEFAULT 'home';  -- prices may depend on it

ALTER TABLE snapshot ADD COLUMN size_bytes BIGINT NOT NULL DEFAULT 0;  -- what it alone keeps, from when it was ready on
ALTER TABLE instance ADD COLUMN held_snapshots_bytes BIGINT NOT NULL DEFAULT 0;  -- the sum of those that are ready

-- Counters of what guests sent out of the house, as they were read. Rows are only ever added, and one that tells nothing
-- new is none: so within an epoch `bytes` only grows, and what was sent is the sum of `bytes - bytes_before`.
CREATE TABLE meter_reading (
    number BIGINT PRIMARY KEY,    -- 1, 2, 3 … in the order they were made
    instance_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,     -- of the instance's newest event then: it says where it was and whose
    epoch TEXT NOT NULL,          -- the counter's life: another one began at nothing
    bytes BIGINT NOT NULL,
    bytes_before BIGINT NOT NULL, -- the reading before in this epoch; 0: none
    at_us BIGINT NOT NULL,        -- never in a day that was closed before
    UNIQUE (instance_id, epoch, bytes),
    CHECK (bytes > bytes_before AND bytes_before >= 0)
);
CREATE INDEX meter_reading_by_time ON meter_reading (at_us, instance_id);
CREATE INDEX meter_reading_by_instance ON meter_reading (instance_id, at_us);
INSERT INTO meter_cursor (name, event_id, intervals) VALUES ('readings', '', 0);  -- `intervals` counts the readings here

-- Traffic is no part of an interval any more: one that lasts for months would not be charged for it until its end.
ALTER TABLE meter_instance DROP COLUMN egress_bytes;
ALTER TABLE meter_instance DROP COLUMN egress_from_bytes;
ALTER TABLE meter_interval DROP COLUMN egress_bytes;
