-- Sign-in to the console: passwords, one-time links and sessions. Times are microseconds since 1970, UTC.
-- The columns project_id, role_max and limit_expires_at_us limit a session as they limit an API key.

CREATE TABLE console_login (
    member_id TEXT PRIMARY KEY REFERENCES member (id),
    user_name TEXT NOT NULL UNIQUE,   -- lower case; unique in the installation
    password TEXT NOT NULL,           -- argon2id, with its parameters
    totp_secret TEXT NOT NULL,        -- base 32; empty: no second factor
    totp_step BIGINT NOT NULL,        -- the last time step that was accepted: a code works once
    changed_at_us BIGINT NOT NULL
);

CREATE TABLE console_link (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,             -- SHA-256 of the secret, which is 256 random bits and never stored
    member_id TEXT NOT NULL REFERENCES member (id),
    key_id TEXT NOT NULL,             -- the API key that created it; empty: none. The link ends with the key
    project_id TEXT NOT NULL,
    role_max TEXT NOT NULL,
    limit_expires_at_us BIGINT,
    created_at_us BIGINT NOT NULL,
    expires_at_us BIGINT NOT NULL,
    used_at_us BIGINT
);
CREATE INDEX console_link_by_member ON console_link (member_id);

CREATE TABLE console_session (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    member_id TEXT NOT NULL REFERENCES member (id),
    key_id TEXT NOT NULL,             -- the API key that it was opened with; empty: none. The session ends with the key
    project_id TEXT NOT NULL,
    role_max TEXT NOT NULL,
    limit_expires_at_us BIGINT,
    created_at_us BIGINT NOT NULL,
    expires_at_us BIGINT NOT NULL,
    revoked_at_us BIGINT,
    address TEXT NOT NULL,            -- where it was opened from
    agent TEXT NOT NULL               -- the browser, as it named itself
);
CREATE INDEX console_session_by_member ON console_session (member_id);
