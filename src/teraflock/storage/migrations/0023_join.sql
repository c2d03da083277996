-- Hosts that join: invitations with a one-time token, and what is known about each joined host.

CREATE TABLE host_invitation (
    token_hash TEXT PRIMARY KEY,      -- SHA-256; the token itself is shown once and not stored
    name TEXT NOT NULL,               -- of the host; empty: its own host name
    address TEXT NOT NULL,            -- at which the server reaches it; empty: the one it joins from
    trusted_wire SMALLINT NOT NULL,   -- whether traffic between hosts may be unencrypted
    created_at_us BIGINT NOT NULL,
    expires_at_us BIGINT NOT NULL,
    key_hash TEXT NOT NULL,           -- the key of the host that used it; empty: unused
    host TEXT NOT NULL                -- the name of that host
);

-- Each joined host has a row in `site` with the same name.
CREATE TABLE joined_host (
    name TEXT PRIMARY KEY,
    number INTEGER NOT NULL UNIQUE,   -- of its address between hosts
    certificate TEXT NOT NULL,        -- PEM
    cards TEXT NOT NULL,              -- JSON: UUIDs of its GPUs when it joined
    trusted_wire SMALLINT NOT NULL,
    joined_at_us BIGINT NOT NULL
);
