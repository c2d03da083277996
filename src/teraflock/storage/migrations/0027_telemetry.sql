-- Readings of cards and instances. Old rows are deleted, so the size is limited by the number of cards and instances.

-- The last reading of each own host.
CREATE TABLE reading_last (
    host_id TEXT PRIMARY KEY REFERENCES host (id),
    at_us BIGINT NOT NULL,
    content TEXT NOT NULL           -- JSON
);

-- Earlier readings: a row has up to 30 samples of all cards and instances of a host.
CREATE TABLE reading_past (
    host_id TEXT NOT NULL REFERENCES host (id),
    step_seconds INTEGER NOT NULL,  -- between two samples: 10, kept for a day, or 300, kept for 30 days
    start_us BIGINT NOT NULL,
    content TEXT NOT NULL,          -- packed, see fleet/telemetry/packing.py
    PRIMARY KEY (host_id, step_seconds, start_us)
);
CREATE INDEX reading_past_by_age ON reading_past (step_seconds, start_us);

-- How far alerts were sent to the webhook. One row.
CREATE TABLE alert_delivery (
    number INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL,         -- the last event that was sent or given up
    attempts INTEGER NOT NULL,      -- failed attempts to send the next one
    next_at_us BIGINT NOT NULL
);
