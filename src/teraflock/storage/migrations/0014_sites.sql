-- Sites: many engines and cloud accounts per server. A rented host is made for one instance; its row outlives both.

ALTER TABLE instance ADD COLUMN site TEXT NOT NULL DEFAULT '';            -- the engine or account that runs it; empty: ended before there was this column
ALTER TABLE instance ADD COLUMN candidate BIGINT NOT NULL DEFAULT 0;      -- which of the places it may be rented in is tried
ALTER TABLE instance ADD COLUMN tries BIGINT NOT NULL DEFAULT 0;          -- how many places this launch tried before this one
ALTER TABLE instance ADD COLUMN try_next BIGINT NOT NULL DEFAULT 0;       -- 1: once this launch is undone, the next place is tried
ALTER TABLE instance ADD COLUMN doing TEXT NOT NULL DEFAULT '';           -- what the step under way waits for, as the engine says it
UPDATE instance SET site = COALESCE((SELECT h.site FROM host h WHERE h.id = instance.host_id), '');
CREATE INDEX instance_by_site ON instance (site, id);

ALTER TABLE host ADD COLUMN kind TEXT NOT NULL DEFAULT 'own';             -- own: we place on it. rented: made for one instance
ALTER TABLE host ADD COLUMN type TEXT NOT NULL DEFAULT '';                -- rented: the provider's machine type
ALTER TABLE host ADD COLUMN zone TEXT NOT NULL DEFAULT '';
ALTER TABLE host ADD COLUMN remote_id TEXT NOT NULL DEFAULT '';           -- rented: the provider's id of the machine; empty: not known yet
ALTER TABLE host ADD COLUMN login TEXT NOT NULL DEFAULT 'root';           -- the user to log in as
ALTER TABLE host ADD COLUMN endpoints TEXT NOT NULL DEFAULT '';           -- rented: JSON, the address and port for each port of the guest
ALTER TABLE host ADD COLUMN token TEXT NOT NULL DEFAULT '';               -- rented: the launch token, written before the provider is asked
ALTER TABLE host ADD COLUMN token_at_us BIGINT;                           -- when it was first used
ALTER TABLE host ADD COLUMN made_at_us BIGINT;                            -- when the provider said that the machine exists
ALTER TABLE host ADD COLUMN gone_at_us BIGINT;                            -- when it was given back
ALTER TABLE host ADD COLUMN cost_micros_per_hour BIGINT;                  -- what it costs us now; NULL: not known
ALTER TABLE host ADD COLUMN cost_currency TEXT NOT NULL DEFAULT '';
CREATE INDEX host_by_kind ON host (kind, site, id);

CREATE TABLE site (
    name TEXT PRIMARY KEY,
    kind TEXT NOT NULL,         -- the folder of its driver
    options TEXT NOT NULL,      -- JSON object of texts; secrets are only named here: the variable or file they are in
    created_at_us BIGINT NOT NULL
);

-- Who may rent machines at a site. Nobody may who is not named.
CREATE TABLE site_use (
    site TEXT NOT NULL,
    organisation_id TEXT NOT NULL,
    PRIMARY KEY (site, organisation_id)
);

-- How a site was found the last time it changed.
CREATE TABLE site_state (
    site TEXT PRIMARY KEY,
    problem TEXT NOT NULL,      -- empty: it answers
    since_us BIGINT NOT NULL
);
