-- Sign-in by an identity provider, self sign-up, SSH keys of members, and what members learned.
-- Times are microseconds since 1970, UTC.

CREATE TABLE member_identity (
    issuer TEXT NOT NULL,             -- the identity provider
    subject TEXT NOT NULL,            -- the person, as the provider names them; it never changes
    member_id TEXT NOT NULL REFERENCES member (id),
    email TEXT NOT NULL,              -- when it was connected; for display only
    created_at_us BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject, member_id)
);
CREATE INDEX member_identity_by_member ON member_identity (member_id);

CREATE TABLE used_once (
    digest TEXT PRIMARY KEY,          -- SHA-256 of something that works once, such as the state of a sign-in
    expires_at_us BIGINT NOT NULL     -- it is refused after this time anyway, so the row can be deleted
);

CREATE TABLE sign_up (
    organisation_id TEXT PRIMARY KEY REFERENCES organisation (id),
    address TEXT NOT NULL,
    created_at_us BIGINT NOT NULL
);
CREATE INDEX sign_up_by_time ON sign_up (created_at_us);

CREATE TABLE member_ssh_key (
    id TEXT PRIMARY KEY,
    member_id TEXT NOT NULL REFERENCES member (id),
    name TEXT NOT NULL,
    public_key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,        -- SHA256:…, as ssh-keygen -l prints it
    created_at_us BIGINT NOT NULL
);
CREATE UNIQUE INDEX member_ssh_key_once ON member_ssh_key (member_id, fingerprint);

CREATE TABLE lesson_passed (
    member_id TEXT NOT NULL REFERENCES member (id),
    lesson TEXT NOT NULL,
    passed_at_us BIGINT NOT NULL,
    PRIMARY KEY (member_id, lesson)
);

CREATE TABLE certificate (
    id TEXT PRIMARY KEY,              -- 128 random bits: anyone who knows it can check the certificate
    member_id TEXT NOT NULL UNIQUE REFERENCES member (id),
    member_name TEXT NOT NULL,        -- both names as they were when it was issued
    organisation_name TEXT NOT NULL,
    issued_at_us BIGINT NOT NULL
);
