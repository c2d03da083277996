-- Preemptible instances on own hosts: mode `spot`, and bids whose price is set by an auction.

ALTER TABLE instance ADD COLUMN preemptible TEXT NOT NULL DEFAULT '';  -- JSON; empty: not preemptible, as all from before
CREATE INDEX instance_preemptible ON instance (host_id) WHERE preemptible <> '' AND phase NOT IN ('failed', 'gone');

ALTER TABLE meter_interval ADD COLUMN card_micros_per_hour BIGINT NOT NULL DEFAULT 0;  -- set by an auction; 0: the price book
ALTER TABLE charge ADD COLUMN card_micros_per_hour BIGINT NOT NULL DEFAULT 0;

-- Every result of an auction. Rows are added and never changed.
CREATE TABLE auction (
    id TEXT PRIMARY KEY,
    at_us BIGINT NOT NULL,
    host_id TEXT NOT NULL,
    region TEXT NOT NULL,
    gpu TEXT NOT NULL,
    currency TEXT NOT NULL,
    floor_micros BIGINT NOT NULL,   -- per card and hour
    price_micros BIGINT NOT NULL,   -- the highest losing bid, or the floor
    entries TEXT NOT NULL           -- JSON: who took part, with which bid, who won, at which price
);
CREATE INDEX auction_by_host ON auction (host_id, gpu, id);
CREATE INDEX auction_by_place ON auction (region, gpu, id);

-- When spot machines could be had at a place, as runs saw it. A row is one period.
CREATE TABLE run_sighting (
    place TEXT NOT NULL,
    from_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL,       -- when it was last seen like this
    up BIGINT NOT NULL,             -- 1: available
    PRIMARY KEY (place, from_us)
);
ALTER TABLE run ADD COLUMN is_term_sent BIGINT NOT NULL DEFAULT 0;
