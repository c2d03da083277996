-- Signs of life: when each site was watched, without a break. A row grows while a server reads the site's hosts every few
-- seconds; a new row begins when a server takes over, or after nobody watched for a while.
CREATE TABLE site_watch (
    site TEXT NOT NULL,
    from_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL,     -- the last reading of this row
    PRIMARY KEY (site, from_us)
);

-- Guests that ran on while nobody watched: the engine showed a start before the last sign of life.
CREATE TABLE ran_unwatched (
    instance_id TEXT NOT NULL,
    at_us BIGINT NOT NULL,        -- `from_us` of the watch that found it
    sequence BIGINT NOT NULL,     -- of the instance's newest event then
    started_us BIGINT NOT NULL,   -- when the guest started, as the engine says
    PRIMARY KEY (instance_id, at_us)
);

-- What a member may commit to by purchases in a month. Who has no right to buy may, up to this.
CREATE TABLE purchase_limit (
    project_id TEXT NOT NULL,
    member_id TEXT NOT NULL,
    micros BIGINT NOT NULL,
    month TEXT NOT NULL,          -- of `spent_micros`
    spent_micros BIGINT NOT NULL,
    PRIMARY KEY (project_id, member_id)
);

-- The operator's own cap on a project's month: all is stopped when it is reached, whatever the tenant's budget says.
CREATE TABLE budget_cap (
    project_id TEXT PRIMARY KEY,
    currency TEXT NOT NULL,
    micros BIGINT NOT NULL,
    notice_seconds BIGINT NOT NULL
);

-- Images that were made of an instance are charged for what they keep, once their size is known.
ALTER TABLE image ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
ALTER TABLE image ADD COLUMN sequence BIGINT NOT NULL DEFAULT 0;  -- events told of it; 0: its size is not known yet

ALTER TABLE bill_profile ADD COLUMN tax_number TEXT NOT NULL DEFAULT '';  -- of the customer, for invoices
