-- What operators do: hold instances, suspend and delete organisations, announce. Times are microseconds since 1970, UTC.

ALTER TABLE organisation ADD COLUMN state TEXT NOT NULL DEFAULT 'active';  -- active, suspended, deleting or deleted
ALTER TABLE organisation ADD COLUMN state_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE organisation ADD COLUMN state_since_us BIGINT NOT NULL DEFAULT 0;
CREATE INDEX organisation_by_state ON organisation (state) WHERE state <> 'active';

ALTER TABLE instance ADD COLUMN hold TEXT NOT NULL DEFAULT '';    -- JSON: the operator stopped it, and only the operator starts it
ALTER TABLE instance ADD COLUMN notice TEXT NOT NULL DEFAULT '';  -- shown until the tenant acknowledges it, such as a lost disk
ALTER TABLE instance ADD COLUMN problem_operator TEXT NOT NULL DEFAULT '';  -- `problem` with what only the operator can act on
ALTER TABLE snapshot ADD COLUMN problem TEXT NOT NULL DEFAULT '';

CREATE TABLE announcement (
    id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL,   -- empty: for all
    text TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    until_us BIGINT,                 -- NULL: until it is removed
    removed_at_us BIGINT
);
