-- The cloud on own servers: who asks, what hardware there is, and the instances. Truth is 0 or 1; times are microseconds
-- since 1970, UTC; what is JSON says so.

CREATE TABLE installation (
    id TEXT PRIMARY KEY,        -- marks all that this installation makes on an engine; one row
    made_at_us BIGINT NOT NULL
);

-- Who asks -----------------------------------------------------------------------------------------------------------

CREATE TABLE organisation (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at_us BIGINT NOT NULL
);

CREATE TABLE project (
    id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisation (id),
    name TEXT NOT NULL,
    quota TEXT NOT NULL,        -- JSON, see tenant/model.py
    network_number BIGINT NOT NULL,  -- which part of the address range is the project's own
    created_at_us BIGINT NOT NULL,
    removed_at_us BIGINT        -- its row stays: instances that are gone, and bills, still name it
);
CREATE UNIQUE INDEX project_by_name ON project (organisation_id, name) WHERE removed_at_us IS NULL;
CREATE UNIQUE INDEX project_by_network ON project (network_number) WHERE network_number >= 0;

CREATE TABLE member (
    id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisation (id),
    name TEXT NOT NULL,
    is_operator BIGINT NOT NULL,  -- runs the house: hosts, organisations
    created_at_us BIGINT NOT NULL,
    removed_at_us BIGINT,
    UNIQUE (organisation_id, name)
);

CREATE TABLE member_role (
    member_id TEXT NOT NULL REFERENCES member (id),
    project_id TEXT NOT NULL,   -- empty: every project of the organisation
    role TEXT NOT NULL,
    PRIMARY KEY (member_id, project_id)
);

CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    member_id TEXT NOT NULL REFERENCES member (id),
    name TEXT NOT NULL,
    digest TEXT NOT NULL,       -- SHA-256 of the secret, which is 256 random bits and never kept
    project_id TEXT NOT NULL,   -- empty: as far as its member reaches
    role_max TEXT NOT NULL,     -- empty: as much as its member may
    created_at_us BIGINT NOT NULL,
    expires_at_us BIGINT,
    revoked_at_us BIGINT
);
CREATE INDEX api_key_by_member ON api_key (member_id);

CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    at_us BIGINT NOT NULL,
    organisation_id TEXT NOT NULL,
    project_id TEXT NOT NULL,   -- empty: not about one project
    key_id TEXT NOT NULL,
    member_id TEXT NOT NULL,
    action TEXT NOT NULL,       -- noun.verb
    subject TEXT NOT NULL,
    details TEXT NOT NULL       -- JSON object
);
CREATE INDEX audit_by_organisation ON audit (organisation_id, id);

CREATE TABLE idempotency (
    scope TEXT NOT NULL,        -- the project or organisation the key counts in
    key TEXT NOT NULL,
    digest TEXT NOT NULL,       -- of the request: the same key for another request is refused
    answer TEXT NOT NULL,       -- JSON: what was made
    created_at_us BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);

ALTER TABLE event ADD COLUMN project_id TEXT NOT NULL DEFAULT '';
CREATE INDEX event_by_project ON event (project_id, id);
CREATE INDEX event_by_subject ON event (subject, id);

-- What hardware there is ---------------------------------------------------------------------------------------------

CREATE TABLE host (
    id TEXT PRIMARY KEY,
    site TEXT NOT NULL,         -- the engine that drives it
    name TEXT NOT NULL,         -- as the engine calls it
    state TEXT NOT NULL,
    address TEXT NOT NULL,      -- where its forwarded ports are reached from outside
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    simulated BIGINT NOT NULL,
    registered_at_us BIGINT NOT NULL,
    seen_at_us BIGINT NOT NULL,
    UNIQUE (site, name)
);

CREATE TABLE host_gpu (
    host_id TEXT NOT NULL REFERENCES host (id),
    slot TEXT NOT NULL,         -- PCI address, or the UUID of a MIG slice
    kind TEXT NOT NULL,         -- physical or mig
    gpu TEXT NOT NULL,          -- the catalog's id of the card
    name TEXT NOT NULL,         -- as the driver calls it
    memory_bytes BIGINT NOT NULL,
    healthy BIGINT NOT NULL,
    instance_id TEXT,           -- who has it; a card has room for one
    idle_since_us BIGINT,       -- since when it was seen to do nothing; NULL: it works, or nobody can tell
    PRIMARY KEY (host_id, slot)
);
CREATE INDEX host_gpu_by_instance ON host_gpu (instance_id);

CREATE TABLE host_port (
    host_id TEXT NOT NULL REFERENCES host (id),
    port BIGINT NOT NULL,
    guest_port BIGINT NOT NULL,
    instance_id TEXT NOT NULL,
    PRIMARY KEY (host_id, port)
);
CREATE INDEX host_port_by_instance ON host_port (instance_id);

-- What an instance boots ---------------------------------------------------------------------------------------------

CREATE TABLE image (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,   -- empty: for all
    name TEXT NOT NULL,
    recipe TEXT NOT NULL,       -- empty: made from an instance
    state TEXT NOT NULL,
    problem TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    source_instance_id TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    UNIQUE (project_id, name)
);

-- The running thing --------------------------------------------------------------------------------------------------

CREATE TABLE instance (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES project (id),
    name TEXT NOT NULL,
    wanted TEXT NOT NULL,       -- written by the tenant or a rule
    wanted_at_us BIGINT NOT NULL,
    phase TEXT NOT NULL,        -- written by the loop, from what an engine reported
    gpu TEXT NOT NULL,          -- the shape that is wanted; empty: no card
    gpus BIGINT NOT NULL,
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    held_vcpus BIGINT NOT NULL, -- what is set aside for it on its host; cards and ports stand in their own tables
    held_ram_bytes BIGINT NOT NULL,
    held_disk_bytes BIGINT NOT NULL,
    image TEXT NOT NULL,
    access TEXT NOT NULL,
    spec TEXT NOT NULL,         -- JSON: keys, command, user-data, labels and what else is fixed at launch
    host_id TEXT,
    address TEXT,               -- in the project's network
    host_key TEXT NOT NULL,     -- the public SSH key of the guest, once known
    problem TEXT NOT NULL,      -- why it failed or waits, in a sentence
    exit_code BIGINT,           -- of its command
    created_at_us BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    running_since_us BIGINT,
    gone_at_us BIGINT,
    request TEXT NOT NULL,      -- JSON: what was asked for besides `wanted`: a restart, a snapshot …; empty: nothing
    operation TEXT NOT NULL,    -- what is being done; empty: nothing
    step TEXT NOT NULL,         -- the last step that is done; empty: none yet
    undoing BIGINT NOT NULL,
    operation_since_us BIGINT NOT NULL,
    attempts BIGINT NOT NULL,   -- of the next step
    generation BIGINT NOT NULL, -- counts operations
    sequence BIGINT NOT NULL,   -- counts events
    due_at_us BIGINT NOT NULL,  -- when the loop should look at it again
    lease_owner TEXT NOT NULL,  -- the worker that has it in hand, as long as that worker lives; empty: none
    version BIGINT NOT NULL DEFAULT 0,  -- counts the changes a tenant can see, so that pages need not be made anew
    settled BIGINT NOT NULL,    -- 1: nothing to do; the loop does not load it
    UNIQUE (project_id, address)
);
CREATE INDEX instance_by_project ON instance (project_id, id);
CREATE UNIQUE INDEX instance_by_name ON instance (project_id, name) WHERE phase <> 'gone';
CREATE INDEX instance_by_host ON instance (host_id);
CREATE INDEX instance_due ON instance (due_at_us, id) WHERE settled = 0;

CREATE TABLE snapshot (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    instance_id TEXT NOT NULL REFERENCES instance (id),
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    UNIQUE (instance_id, name)
);

CREATE TABLE instance_output (
    instance_id TEXT PRIMARY KEY,
    log TEXT NOT NULL           -- the end of what its command wrote
);

-- Processes that run the loops. One that has not been heard of until `until_us` is dead, and what it had in hand is free.
CREATE TABLE worker (
    id TEXT PRIMARY KEY,
    until_us BIGINT NOT NULL
);
