-- What was held, what it costs, and who owes whom. Times are microseconds since 1970, UTC; amounts are millionths of
-- `currency`; what is JSON says so. Rows of meter_interval, charge, ledger and purchase_term are only ever added.

-- What was held ------------------------------------------------------------------------------------------------------

CREATE TABLE meter_cursor (
    name TEXT PRIMARY KEY,
    event_id TEXT NOT NULL,       -- the newest event that was read
    intervals BIGINT NOT NULL     -- how many were made so far: the number of the newest
);
INSERT INTO meter_cursor (name, event_id, intervals) VALUES ('meter', '', 0);

-- Where each instance stands: the last change that was taken, and what it holds from then on.
CREATE TABLE meter_instance (
    instance_id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,     -- of the last change taken; all before it were taken too
    generation BIGINT NOT NULL,   -- of the change that opened what is open
    at_us BIGINT NOT NULL,        -- when it took effect; no later change takes effect before
    phase TEXT NOT NULL,
    egress_bytes BIGINT NOT NULL, -- the counter as last read
    open_sequence BIGINT,         -- of the change from which on it holds what follows; NULL: nothing that is charged
    from_us BIGINT NOT NULL,
    run_us BIGINT,                -- when the run began; NULL: does not run
    run_sequence BIGINT,          -- of the change that began it: two runs may begin at one time
    egress_from_bytes BIGINT NOT NULL,
    held TEXT NOT NULL            -- JSON: see meter/model.py
);
CREATE INDEX meter_instance_open ON meter_instance (project_id, instance_id) WHERE open_sequence IS NOT NULL;

-- Instances of which a change was seen whose forerunner was not: looked at again in every turn.
CREATE TABLE meter_behind (
    instance_id TEXT PRIMARY KEY
);

CREATE TABLE meter_interval (
    number BIGINT PRIMARY KEY,    -- 1, 2, 3 … in the order they were made
    instance_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,     -- of the change that opened it
    revision BIGINT NOT NULL,     -- the highest counts: a stop may reach back behind later changes
    generation BIGINT NOT NULL,
    project_id TEXT NOT NULL,
    from_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL,
    run_us BIGINT,                -- when the run it is part of began; NULL: part of none
    ends_run BIGINT NOT NULL,     -- 1: the run ended with it
    house_fault BIGINT NOT NULL,  -- 1: and the tenant did not end it
    gpu TEXT NOT NULL,
    gpus BIGINT NOT NULL,
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    snapshots_bytes BIGINT NOT NULL,
    addresses BIGINT NOT NULL,
    egress_bytes BIGINT NOT NULL, -- sent out of the house meanwhile
    mode TEXT NOT NULL,
    host TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    member TEXT NOT NULL,
    labels TEXT NOT NULL,         -- JSON object
    UNIQUE (instance_id, sequence, revision),
    CHECK (until_us >= from_us)
);

-- What it costs ------------------------------------------------------------------------------------------------------

CREATE TABLE price_book (
    version BIGINT PRIMARY KEY,
    taken_at_us BIGINT NOT NULL,
    member TEXT NOT NULL,         -- who brought it
    text TEXT NOT NULL            -- as it was given
);

CREATE TABLE price_period (
    version BIGINT NOT NULL REFERENCES price_book (version),
    from_us BIGINT NOT NULL,      -- never before the book was taken: the past keeps its prices
    until_us BIGINT NOT NULL,
    prices TEXT NOT NULL,         -- JSON: see bill/price/model.py
    PRIMARY KEY (version, from_us),
    CHECK (until_us > from_us)
);

CREATE TABLE bill_cursor (
    name TEXT PRIMARY KEY,
    intervals BIGINT NOT NULL,    -- up to this number they are charged
    charges BIGINT NOT NULL,      -- the number of the newest
    entries BIGINT NOT NULL,
    booked_until_us BIGINT NOT NULL, -- days are closed up to here
    latest_us BIGINT NOT NULL     -- the end of the latest time charged: no price or purchase begins before
);
INSERT INTO bill_cursor (name, intervals, charges, entries, booked_until_us, latest_us) VALUES ('bill', 0, 0, 0, 0, 0);

CREATE TABLE charge (
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
    address_micros BIGINT NOT NULL,
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
    addresses BIGINT NOT NULL,
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
    CHECK (micros = gpu_micros + vcpu_micros + ram_micros + disk_micros + snapshot_micros + address_micros
        + egress_micros + minimum_micros + fee_micros)
);
CREATE INDEX charge_by_project ON charge (project_id, month, number);

-- What a bill adds up: written with the charges, so that a bill of a hundred thousand lines is shown at once.
CREATE TABLE charge_sum (
    project_id TEXT NOT NULL,
    month TEXT NOT NULL,
    currency TEXT NOT NULL,
    gpu TEXT NOT NULL,
    member TEXT NOT NULL,
    labels TEXT NOT NULL,
    kind TEXT NOT NULL,
    lines BIGINT NOT NULL,
    micros BIGINT NOT NULL,
    list_micros BIGINT NOT NULL,
    PRIMARY KEY (project_id, month, currency, gpu, member, labels, kind)
);

-- Who owes whom ------------------------------------------------------------------------------------------------------

-- An entry moves an amount from one account to another, so no entry can be out of balance.
CREATE TABLE ledger (
    number BIGINT PRIMARY KEY,    -- 1, 2, 3 …
    at_us BIGINT NOT NULL,
    kind TEXT NOT NULL,
    project_id TEXT NOT NULL,
    debit TEXT NOT NULL,
    credit TEXT NOT NULL,
    currency TEXT NOT NULL,
    micros BIGINT NOT NULL,
    subject TEXT NOT NULL,        -- with the next three and the kind: an entry is made once
    generation BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    segment BIGINT NOT NULL,
    UNIQUE (subject, sequence, segment, generation, kind),
    CHECK (micros > 0),
    CHECK (debit <> credit)
);
-- a project's payments; its charges stand in their own table
CREATE INDEX ledger_payments ON ledger (project_id, number) WHERE kind NOT IN ('charge', 'reversal');

CREATE TABLE account (
    name TEXT NOT NULL,
    currency TEXT NOT NULL,
    debits BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    PRIMARY KEY (name, currency),
    CHECK (debits >= 0 AND credits >= 0)
);

-- Summed up from the accounts, not from the entries: a writer that forgets one side of an entry fails here.
CREATE TABLE trial_balance (
    currency TEXT PRIMARY KEY,
    debits BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    CHECK (debits = credits)
);

-- How a project buys and pays ----------------------------------------------------------------------------------------

CREATE TABLE bill_profile (
    project_id TEXT PRIMARY KEY,
    currency TEXT NOT NULL,
    pays TEXT NOT NULL,           -- invoice or prepaid
    tax_name TEXT NOT NULL,
    tax_bp BIGINT NOT NULL,
    customer TEXT NOT NULL,       -- lines of an address, for invoices
    CHECK (tax_bp >= 0)
);

CREATE TABLE purchase (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    mode TEXT NOT NULL,           -- monthly or reserved
    years BIGINT NOT NULL,        -- reserved for; 0: monthly
    upfront BIGINT NOT NULL,      -- 1: all was paid at once
    renews BIGINT NOT NULL,
    due_us BIGINT NOT NULL,       -- when its next term begins
    ended BIGINT NOT NULL         -- 1: nothing is to come
);
CREATE INDEX purchase_by_project ON purchase (project_id, id);
CREATE INDEX purchase_due ON purchase (due_us, id) WHERE ended = 0;

-- What a purchase covers, from when until when, and what was paid for it. A later term cuts an earlier one off.
CREATE TABLE purchase_term (
    purchase_id TEXT NOT NULL REFERENCES purchase (id),
    sequence BIGINT NOT NULL,
    kind TEXT NOT NULL,           -- bought, continued, renewed, upgraded or ended
    instance_id TEXT NOT NULL,
    from_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL,
    gpu TEXT NOT NULL,
    gpus BIGINT NOT NULL,
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    currency TEXT NOT NULL,
    month_micros BIGINT NOT NULL, -- what a whole month of it costs
    fee_micros BIGINT NOT NULL,   -- due at from_us; below zero: given back
    PRIMARY KEY (purchase_id, sequence)
);
CREATE INDEX purchase_term_by_instance ON purchase_term (instance_id, from_us);

CREATE TABLE credit_grant (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    currency TEXT NOT NULL,
    micros BIGINT NOT NULL,
    from_us BIGINT NOT NULL,      -- pays for what was used from then on
    expires_us BIGINT NOT NULL,   -- and before then
    drawn_micros BIGINT NOT NULL,
    expired BIGINT NOT NULL,      -- 1: what was left has lapsed
    moves BIGINT NOT NULL,        -- counts its entries in the ledger
    CHECK (drawn_micros >= 0 AND drawn_micros <= micros)
);
CREATE INDEX credit_grant_by_project ON credit_grant (project_id, expires_us);

CREATE TABLE budget (
    project_id TEXT PRIMARY KEY,
    currency TEXT NOT NULL,
    micros BIGINT NOT NULL,       -- a calendar month, UTC
    levels TEXT NOT NULL,         -- JSON: percents
    hard_stop BIGINT NOT NULL,
    notice_seconds BIGINT NOT NULL, -- how long before the hard stop it is announced
    CHECK (micros >= 0)
);

-- What was told about a budget or a prepaid balance, so that it is told once.
CREATE TABLE budget_notice (
    project_id TEXT NOT NULL,
    month TEXT NOT NULL,
    kind TEXT NOT NULL,           -- level, announced or stopped
    level BIGINT NOT NULL,        -- percent; 0 where the kind needs none
    at_us BIGINT NOT NULL,
    spent_micros BIGINT NOT NULL,
    limit_micros BIGINT NOT NULL,
    PRIMARY KEY (project_id, month, kind, level)
);

CREATE TABLE invoice (
    number BIGINT PRIMARY KEY,    -- 1, 2, 3 … without a gap
    project_id TEXT NOT NULL,
    month TEXT NOT NULL,
    currency TEXT NOT NULL,
    charges_after BIGINT NOT NULL, -- the charges it is made of: numbers behind this one …
    charges_until BIGINT NOT NULL, -- … up to this one
    usage_micros BIGINT NOT NULL,
    credit_micros BIGINT NOT NULL,
    tax_micros BIGINT NOT NULL,
    paid_micros BIGINT NOT NULL,  -- from the prepaid balance
    due_micros BIGINT NOT NULL,
    issued_at_us BIGINT NOT NULL,
    document TEXT NOT NULL,       -- JSON: all that stands on it
    UNIQUE (project_id, month),
    CHECK (due_micros = usage_micros - credit_micros + tax_micros - paid_micros)
);
