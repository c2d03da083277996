-- Load balancers: an address of a project's network whose port leads to a port of several instances.
CREATE TABLE balancer (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES project (id),
    name TEXT NOT NULL,
    site TEXT NOT NULL,
    host_id TEXT NOT NULL,
    address TEXT NOT NULL,              -- in the project's network
    protocol TEXT NOT NULL,             -- tcp or http
    port BIGINT NOT NULL,
    target_port BIGINT NOT NULL,        -- of the instances
    health_check TEXT NOT NULL,         -- tcp, or http: and a path
    check_seconds BIGINT NOT NULL,
    label_key TEXT NOT NULL,            -- instances with this label are backends; empty: none are
    label_value TEXT NOT NULL,
    published BIGINT,                   -- the port of the host that leads to it; NULL: it is not published
    certificate TEXT NOT NULL,          -- PEM; empty: no TLS
    sealed_key TEXT NOT NULL,           -- the certificate's key, encrypted with the installation's key
    certificate_ends_at_us BIGINT,
    ending BIGINT NOT NULL,             -- 1: it was deleted, and its host has yet to remove it
    created_at_us BIGINT NOT NULL,
    UNIQUE (project_id, name),
    UNIQUE (project_id, address),
    UNIQUE (host_id, published)
);

CREATE TABLE balancer_backend (
    balancer_id TEXT NOT NULL REFERENCES balancer (id),
    instance_id TEXT NOT NULL REFERENCES instance (id),
    PRIMARY KEY (balancer_id, instance_id)
);
CREATE INDEX balancer_backend_by_instance ON balancer_backend (instance_id);

-- Public addresses that projects hold, from the operator's pool. One that is attached leads to an instance or a balancer.
CREATE TABLE address (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES project (id),
    address TEXT NOT NULL UNIQUE,
    target_id TEXT NOT NULL,    -- of an instance or a balancer; empty: it leads nowhere
    created_by TEXT NOT NULL,
    created_at_us BIGINT NOT NULL
);
CREATE INDEX address_by_project ON address (project_id, id);
