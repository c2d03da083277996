-- Security groups: what may reach an instance, and what it may reach. Instances that existed before are put into the
-- `default` group of their project, which has the rules in network/security_group/rules.py.
CREATE TABLE security_group (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES project (id),
    name TEXT NOT NULL,
    created_at_us BIGINT NOT NULL,
    version BIGINT NOT NULL DEFAULT 0,  -- counts the changes of its rules
    UNIQUE (project_id, name)
);

CREATE TABLE security_group_rule (
    group_id TEXT NOT NULL REFERENCES security_group (id),
    direction TEXT NOT NULL,    -- in or out
    protocol TEXT NOT NULL,     -- tcp, udp, icmp or any
    port_first BIGINT NOT NULL,
    port_last BIGINT NOT NULL,
    peer TEXT NOT NULL,         -- a network such as 10.0.0.0/8, or the id of a group
    PRIMARY KEY (group_id, direction, protocol, port_first, port_last, peer)
);
CREATE INDEX security_group_rule_by_peer ON security_group_rule (peer);

CREATE TABLE security_group_member (
    instance_id TEXT NOT NULL REFERENCES instance (id),
    group_id TEXT NOT NULL REFERENCES security_group (id),
    PRIMARY KEY (instance_id, group_id)
);
CREATE INDEX security_group_member_by_group ON security_group_member (group_id);

INSERT INTO security_group (id, project_id, name, created_at_us)
SELECT 'sgr_' || SUBSTR(id, 5), id, 'default', created_at_us FROM project WHERE removed_at_us IS NULL;
INSERT INTO security_group_rule (group_id, direction, protocol, port_first, port_last, peer)
SELECT id, 'in', 'tcp', 22, 22, '0.0.0.0/0' FROM security_group;
INSERT INTO security_group_rule (group_id, direction, protocol, port_first, port_last, peer)
SELECT id, 'in', 'tcp', 8888, 8888, '0.0.0.0/0' FROM security_group;
INSERT INTO security_group_rule (group_id, direction, protocol, port_first, port_last, peer)
SELECT id, 'in', 'any', 0, 65535, id FROM security_group;
INSERT INTO security_group_rule (group_id, direction, protocol, port_first, port_last, peer)
SELECT id, 'out', 'any', 0, 65535, '0.0.0.0/0' FROM security_group;
INSERT INTO security_group_member (instance_id, group_id)
SELECT i.id, g.id FROM instance i JOIN security_group g ON g.project_id = i.project_id
WHERE i.phase <> 'gone' AND i.address IS NOT NULL;

-- Ports of hosts that tenants opened to ports of their instances. SSH and Jupyter have theirs in host_port, from another
-- range.
CREATE TABLE published_port (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES project (id),
    instance_id TEXT NOT NULL REFERENCES instance (id),
    host_id TEXT NOT NULL,
    port BIGINT NOT NULL,
    guest_port BIGINT NOT NULL,
    created_at_us BIGINT NOT NULL,
    UNIQUE (host_id, port),
    UNIQUE (instance_id, guest_port)
);
CREATE INDEX published_port_by_project ON published_port (project_id, id);

-- Network ACLs: numbered rules for what crosses the border of a project's network, in both directions and without memory.
CREATE TABLE acl (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES project (id),
    name TEXT NOT NULL,
    attached BIGINT NOT NULL,   -- 1: it guards the project's network
    created_at_us BIGINT NOT NULL,
    UNIQUE (project_id, name)
);
CREATE UNIQUE INDEX acl_attached ON acl (project_id) WHERE attached = 1;

CREATE TABLE acl_rule (
    acl_id TEXT NOT NULL REFERENCES acl (id),
    direction TEXT NOT NULL,    -- in or out
    number BIGINT NOT NULL,     -- the lowest that matches decides
    action TEXT NOT NULL,       -- allow or deny
    protocol TEXT NOT NULL,
    port_first BIGINT NOT NULL,
    port_last BIGINT NOT NULL,
    peer TEXT NOT NULL,         -- a network
    PRIMARY KEY (acl_id, direction, number)
);
