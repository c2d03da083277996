-- What hosts cost us. Times are microseconds since 1970, UTC; amounts are millionths of `currency`.
-- Rows of host_cost, host_size, host_use and cost are only ever added.

-- What a host costs an hour, and from when. Of two rows, the one with the higher number counts from its time on.
CREATE TABLE host_cost (
    number BIGINT PRIMARY KEY,      -- 1, 2, 3 … in the order they were recorded
    host_id TEXT NOT NULL,
    instance_id TEXT NOT NULL,      -- a rented host: the instance it was made for; empty: an own host
    project_id TEXT NOT NULL,       -- of that instance
    from_us BIGINT NOT NULL,
    micros_per_hour BIGINT,         -- NULL: not known from then on
    currency TEXT NOT NULL,
    recorded_at_us BIGINT NOT NULL,
    CHECK (micros_per_hour >= 0)
);
CREATE INDEX host_cost_by_host ON host_cost (host_id, number);

-- What an own host has, to divide its cost by. A row counts until the next one; the first also counts before.
CREATE TABLE host_size (
    host_id TEXT NOT NULL,
    from_us BIGINT NOT NULL,
    gpu_parts BIGINT NOT NULL,      -- millionths of a card; a slice is its share of one
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL,
    PRIMARY KEY (host_id, from_us)
);

-- What an instance held of a host, from one change of it to the next.
CREATE TABLE host_use (
    instance_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,       -- of the change that began it
    host_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    from_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL,
    gpu_parts BIGINT NOT NULL,
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL,
    PRIMARY KEY (instance_id, sequence),
    CHECK (until_us > from_us)
);
CREATE INDEX host_use_by_host ON host_use (host_id, until_us);

-- Each instance's last change that was read, and what it holds since. Rewritten.
CREATE TABLE host_use_open (
    instance_id TEXT PRIMARY KEY,
    sequence BIGINT NOT NULL,       -- of the last change that was read
    at_us BIGINT NOT NULL,          -- when it took effect
    began_sequence BIGINT NOT NULL, -- of the change since which it holds what follows
    host_id TEXT NOT NULL,          -- empty: it holds nothing
    project_id TEXT NOT NULL,
    from_us BIGINT NOT NULL,
    gpu_parts BIGINT NOT NULL,
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL
);
CREATE INDEX host_use_open_by_host ON host_use_open (host_id) WHERE host_id <> '';

-- What each day of a host cost us, and whom it served.
CREATE TABLE cost (
    number BIGINT PRIMARY KEY,      -- 1, 2, 3 … in the order they were booked
    kind TEXT NOT NULL,             -- use, idle, rental or reversal
    reverses BIGINT NOT NULL,       -- a reversal: the number of the row that it takes back; else 0
    host_id TEXT NOT NULL,
    day BIGINT NOT NULL,            -- days since 1970, UTC
    instance_id TEXT NOT NULL,      -- empty: idle
    project_id TEXT NOT NULL,
    month TEXT NOT NULL,            -- 2026-11
    from_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL,
    currency TEXT NOT NULL,
    micros BIGINT NOT NULL,
    booked_at_us BIGINT NOT NULL,
    CHECK (until_us > from_us)
);
CREATE INDEX cost_by_host ON cost (host_id, day, number);
CREATE INDEX cost_by_month ON cost (month, number);

-- Up to when the days of each host are booked. A cost that is set for the past moves it back.
CREATE TABLE cost_host (
    host_id TEXT PRIMARY KEY,
    booked_until_us BIGINT NOT NULL
);
CREATE INDEX cost_host_due ON cost_host (booked_until_us);

CREATE TABLE cost_cursor (
    name TEXT PRIMARY KEY,
    rates BIGINT NOT NULL,          -- how many rows host_cost has
    lines BIGINT NOT NULL           -- how many rows cost has
);
INSERT INTO cost_cursor (name, rates, lines) VALUES ('cost', 0, 0);
