-- No instance ever had a public address of its own, and none was ever charged: the columns go.
ALTER TABLE meter_interval DROP COLUMN addresses;

CREATE TABLE charge_kept (
    number BIGINT PRIMARY KEY,    -- 1, 2, 3 … in the order they were booked
    subject TEXT NOT NULL,        -- the instance, or the purchase
    generation BIGINT NOT NULL,
    sequence BIGINT NOT NULL,     -- of the interval, or of the purchase's term
    segment BIGINT NOT NULL,      -- counts the charges of one interval or term
    kind TEXT NOT NULL,           -- usage, fee, refund or reversal
    reverses BIGINT NOT NULL,     -- a reversal: the segment that it takes back; else -1
    project_id TEXT NOT NULL,
    month TEXT NOT NULL,          -- 2026-11, of the time it is for
    from_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL,
    currency TEXT NOT NULL,
    micros BIGINT NOT NULL,
    gpu_micros BIGINT NOT NULL,
    vcpu_micros BIGINT NOT NULL,
    ram_micros BIGINT NOT NULL,
    disk_micros BIGINT NOT NULL,
    snapshot_micros BIGINT NOT NULL,
    egress_micros BIGINT NOT NULL,
    minimum_micros BIGINT NOT NULL, -- what a short run costs beyond its time
    fee_micros BIGINT NOT NULL,
    list_micros BIGINT NOT NULL,  -- what all that was held would have cost on demand, without any discount
    gpu TEXT NOT NULL,
    gpus BIGINT NOT NULL,
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    snapshots_bytes BIGINT NOT NULL,
    egress_bytes BIGINT NOT NULL,
    mode TEXT NOT NULL,
    purchase_id TEXT NOT NULL,    -- what covered part or all of it; empty: nothing
    version BIGINT NOT NULL,      -- of the price book; 0: there was no price
    discount_bp BIGINT NOT NULL,
    host TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    member TEXT NOT NULL,
    labels TEXT NOT NULL,         -- JSON object
    booked_at_us BIGINT NOT NULL,
    UNIQUE (subject, sequence, segment, generation),
    CHECK (until_us >= from_us),
    CHECK (micros = gpu_micros + vcpu_micros + ram_micros + disk_micros + snapshot_micros + egress_micros
        + minimum_micros + fee_micros)
);

INSERT INTO charge_kept (
    number, subject, generation, sequence, segment, kind, reverses, project_id, month, from_us, until_us,
    currency, micros, gpu_micros, vcpu_micros, ram_micros, disk_micros, snapshot_micros, egress_micros,
    minimum_micros, fee_micros, list_micros, gpu, gpus, vcpus, ram_bytes, disk_bytes, snapshots_bytes,
    egress_bytes, mode, purchase_id, version, discount_bp, host, region, name, member, labels, booked_at_us
) SELECT
    number, subject, generation, sequence, segment, kind, reverses, project_id, month, from_us, until_us,
    currency, micros, gpu_micros, vcpu_micros, ram_micros, disk_micros, snapshot_micros, egress_micros,
    minimum_micros, fee_micros, list_micros, gpu, gpus, vcpus, ram_bytes, disk_bytes, snapshots_bytes,
    egress_bytes, mode, purchase_id, version, discount_bp, host, region, name, member, labels, booked_at_us
FROM charge;
DROP TABLE charge;
ALTER TABLE charge_kept RENAME TO charge;
CREATE INDEX charge_by_project ON charge (project_id, month, number, name, micros);
