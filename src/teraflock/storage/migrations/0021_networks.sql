-- Networks, subnets and peerings. The network number of a project becomes its network `default`.
CREATE TABLE network (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES project (id),
    name TEXT NOT NULL,
    number BIGINT NOT NULL UNIQUE,  -- its part of the address range, which no other network has
    engine_key TEXT NOT NULL,       -- what engines know it by: its id, or the project's id if it is from before this table
    created_at_us BIGINT NOT NULL,
    removed_at_us BIGINT            -- the row stays until no engine has the network
);
CREATE UNIQUE INDEX network_by_name ON network (project_id, name) WHERE removed_at_us IS NULL;

INSERT INTO network (id, project_id, name, number, engine_key, created_at_us, removed_at_us)
SELECT 'net_' || SUBSTR(id, 5), id, 'default', network_number, id, created_at_us, removed_at_us
FROM project WHERE network_number >= 0;

-- Parts of a network. What is in no part belongs to the subnet `default`, which has no row.
CREATE TABLE subnet (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES project (id),
    network_id TEXT NOT NULL REFERENCES network (id),
    name TEXT NOT NULL,
    cidr TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    UNIQUE (network_id, name)
);
CREATE INDEX subnet_by_project ON subnet (project_id);

-- One side's consent. Packets cross while both sides have theirs.
CREATE TABLE network_peering (
    network_id TEXT NOT NULL REFERENCES network (id),
    peer_project_id TEXT NOT NULL,  -- as the tenant wrote it: it may not exist
    peer_name TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    PRIMARY KEY (network_id, peer_project_id, peer_name)
);
CREATE INDEX network_peering_by_peer ON network_peering (peer_project_id, peer_name);

-- Which ACL guards which subnet, by names: `default` can be guarded before it exists.
CREATE TABLE acl_attachment (
    project_id TEXT NOT NULL REFERENCES project (id),
    network TEXT NOT NULL,
    subnet TEXT NOT NULL,
    acl_id TEXT NOT NULL REFERENCES acl (id),
    PRIMARY KEY (project_id, network, subnet)
);
INSERT INTO acl_attachment (project_id, network, subnet, acl_id)
SELECT project_id, 'default', 'default', id FROM acl WHERE attached = 1;
DROP INDEX acl_attached;
ALTER TABLE acl DROP COLUMN attached;

ALTER TABLE instance ADD COLUMN more_addresses TEXT NOT NULL DEFAULT '[]';  -- JSON: of its further interfaces
