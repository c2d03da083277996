-- What happened, written in the transaction that made it happen. See base/events.py.
CREATE TABLE event (
    id TEXT PRIMARY KEY,
    at_us BIGINT NOT NULL,     -- microseconds since 1970, UTC
    kind TEXT NOT NULL,        -- noun.verb_in_the_past
    subject TEXT NOT NULL,
    details TEXT NOT NULL      -- JSON object
);
CREATE INDEX event_by_kind ON event (kind, id);
