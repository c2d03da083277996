-- Accounts at public clouds. Each account has a row in `site` with the same name.

CREATE TABLE cloud_account (
    name TEXT PRIMARY KEY,          -- also the name of its site
    provider TEXT NOT NULL,
    sealed TEXT NOT NULL,           -- the credentials, encrypted with the installation's key; empty: in a file or variable
    currency TEXT NOT NULL,         -- of the limits: the one that the provider charges in
    limit_micros BIGINT,            -- the most that its machines may cost in a month, UTC; NULL: no limit
    created_at_us BIGINT NOT NULL,
    CHECK (limit_micros >= 0)
);

-- Which projects may rent machines with an account. No other project may.
CREATE TABLE cloud_account_use (
    account TEXT NOT NULL,
    project_id TEXT NOT NULL,
    limit_micros BIGINT,            -- the most that the project's machines there may cost in a month; NULL: no limit
    PRIMARY KEY (account, project_id),
    CHECK (limit_micros >= 0)
);
