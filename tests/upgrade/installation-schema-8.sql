BEGIN TRANSACTION;
CREATE TABLE account (
    name TEXT NOT NULL,
    currency TEXT NOT NULL,
    debits BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    PRIMARY KEY (name, currency),
    CHECK (debits >= 0 AND credits >= 0)
);
INSERT INTO "account" VALUES('project/prj_m7h2kfs8xny4kfgj','USD',2477500000,0);
INSERT INTO "account" VALUES('revenue','USD',0,2477500000);
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
INSERT INTO "api_key" VALUES('key_m7h2kfmcetkzf35x','mem_m7h2kfmc3yzhex1g','first','36c62a107b8511f9cddbca35f6e549301739985346fbd0ec2a344777d0ea496c','','',1794795749004189,NULL,NULL);
INSERT INTO "api_key" VALUES('key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','first','8de413d194f3d6978e5ebabba3be225ad82456cf766b75eb5f6bb87bb53a5260','','',1794795749160190,NULL,NULL);
INSERT INTO "api_key" VALUES('key_m7h2kfscfdy36qyv','mem_m7h2kfsctvrgq5c5','first','8c65f3f21ee3894927947a5c48b9813c9c65348c21996ed8220fda3f7c461dd9','','',1794795749164703,NULL,NULL);
INSERT INTO "api_key" VALUES('key_m7h2kfsnakqm66b4','mem_m7h2kfskz6qvs264','member','fedb30981b2d198d68922d4455e1dc29ea874b30c973e946ca4ca113f4aab4f7','','',1794795749173590,NULL,NULL);
INSERT INTO "api_key" VALUES('key_m7h2kfsrnd8y3vsc','mem_m7h2kfsqwnpe41c1','viewer','062c2917a25b3af5d96545036496aa2a7b500e8712caf1e0d2228041d3b52a03','','',1794795749176899,NULL,NULL);
INSERT INTO "api_key" VALUES('key_m7h2kfszx44ncggb','mem_m7h2kfstn5ppect1','billing','934e69619f48b06aab55549c4d970a2e6d17420217a204825babc81e98ecd21b','','',1794795749183713,NULL,NULL);
INSERT INTO "api_key" VALUES('key_m7h2kft3n0mmbc7j','mem_m7h2kft1wytb96mn','local','0c5a0e5078ffd30755cd4ca88f3c2b773feb7d6387ec14373614d680cdfc553b','','',1794795749187280,NULL,NULL);
INSERT INTO "api_key" VALUES('key_m7h2kft4y3ezw8as','mem_m7h2kfs8qwx86272','capped','d68f8641f1ea243f04a211accf371e844a05b7736a734459ecd5e9f1f0b0bb2d','','viewer',1794795749188566,NULL,NULL);
INSERT INTO "api_key" VALUES('key_m7h2kft56sysqgzx','mem_m7h2kfs8qwx86272','revoked','a2ffb34a8b6ee7bee56b95ea291ee4da71b41df39d581b73f67f858f093f5f1d','','',1794795749189847,1794882149189847,1794795749199761);
INSERT INTO "api_key" VALUES('key_m7h2kftcg0442epw','mem_m7h2kfs8qwx86272','expired','ea7aa454c30d3d441a46787dc23b27ff4460f4b0c265823bfe2c65b408dba6c5','','',1794795749196245,1,NULL);
INSERT INTO "api_key" VALUES('key_m7h2kftdna1wx9hq','mem_m7h2kfs8qwx86272','spare','f3cb2326093eba7a2b30a89bd46a752667ed6cc0e10bf098f52d734b7e3e9486','','',1794795749197840,1794882149197840,NULL);
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
INSERT INTO "audit" VALUES('aud_m7h2kfmdecx3tvgg',1794795749005247,'org_m7h2kfmcedgmb9vz','prj_m7h2kfmc2tesrehe','key_m7h2kfmcetkzf35x','mem_m7h2kfmc3yzhex1g','house.install','tera_m7h2kfmcev64rqjr','{}');
INSERT INTO "audit" VALUES('aud_m7h2kfs51e3zfy4f',1794795749157562,'org_m7h2kfmcedgmb9vz','prj_m7h2kfmc2tesrehe','key_m7h2kfmcetkzf35x','mem_m7h2kfmc3yzhex1g','image.make','img_m7h2kfs5zsw1ypv5','{"name":"base"}');
INSERT INTO "audit" VALUES('aud_m7h2kfs8a7b8w43w',1794795749160605,'org_m7h2kfs8evqw6j73','','key_m7h2kfmcetkzf35x','mem_m7h2kfmc3yzhex1g','organisation.make','org_m7h2kfs8evqw6j73','{"name":"acme","owner":"owner@acme"}');
INSERT INTO "audit" VALUES('aud_m7h2kfsc16k2p46q',1794795749164986,'org_m7h2kfsctz8wc9gc','','key_m7h2kfmcetkzf35x','mem_m7h2kfmc3yzhex1g','organisation.make','org_m7h2kfsctz8wc9gc','{"name":"other","owner":"owner@other"}');
INSERT INTO "audit" VALUES('aud_m7h2kfsgn47ra0qv',1794795749168853,'org_m7h2kfs8evqw6j73','prj_m7h2kfsgt5he4a0r','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','project.make','prj_m7h2kfsgt5he4a0r','{"name":"empty"}');
INSERT INTO "audit" VALUES('aud_m7h2kfskv2j7bqnh',1794795749171430,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','member.make','mem_m7h2kfskz6qvs264','{"name":"member@acme","role":"member"}');
INSERT INTO "audit" VALUES('aud_m7h2kfsnchjjsda0',1794795749173687,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','key.make','key_m7h2kfsnakqm66b4','{"expires_at":null,"member":"mem_m7h2kfskz6qvs264","name":"member","role_max":null}');
INSERT INTO "audit" VALUES('aud_m7h2kfsqjdsan5pt',1794795749175570,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','member.make','mem_m7h2kfsqwnpe41c1','{"name":"viewer@acme","role":"viewer"}');
INSERT INTO "audit" VALUES('aud_m7h2kfssfsqfvskr',1794795749177026,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','key.make','key_m7h2kfsrnd8y3vsc','{"expires_at":null,"member":"mem_m7h2kfsqwnpe41c1","name":"viewer","role_max":null}');
INSERT INTO "audit" VALUES('aud_m7h2kfst2037nsxf',1794795749178245,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','member.make','mem_m7h2kfstn5ppect1','{"name":"billing@acme","role":"billing"}');
INSERT INTO "audit" VALUES('aud_m7h2kfszndj4kthd',1794795749183827,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','key.make','key_m7h2kfszx44ncggb','{"expires_at":null,"member":"mem_m7h2kfstn5ppect1","name":"billing","role_max":null}');
INSERT INTO "audit" VALUES('aud_m7h2kft13dm986cj',1794795749185848,'org_m7h2kfs8evqw6j73','prj_m7h2kfsgt5he4a0r','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','member.make','mem_m7h2kft1wytb96mn','{"name":"local@acme","role":"member"}');
INSERT INTO "audit" VALUES('aud_m7h2kft30yrhjjp9',1794795749187356,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','key.make','key_m7h2kft3n0mmbc7j','{"expires_at":null,"member":"mem_m7h2kft1wytb96mn","name":"local","role_max":null}');
INSERT INTO "audit" VALUES('aud_m7h2kft4g5y0dbyb',1794795749188643,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','key.make','key_m7h2kft4y3ezw8as','{"expires_at":null,"member":"mem_m7h2kfs8qwx86272","name":"capped","role_max":"viewer"}');
INSERT INTO "audit" VALUES('aud_m7h2kft5e516pf86',1794795749189919,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','key.make','key_m7h2kft56sysqgzx','{"expires_at":"2026-11-17T02:22:29.189847+00:00","member":"mem_m7h2kfs8qwx86272","name":"revoked","role_max":null}');
INSERT INTO "audit" VALUES('aud_m7h2kftc9bawkyga',1794795749196336,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','key.make','key_m7h2kftcg0442epw','{"expires_at":"2026-11-17T02:22:29.196245+00:00","member":"mem_m7h2kfs8qwx86272","name":"expired","role_max":null}');
INSERT INTO "audit" VALUES('aud_m7h2kftdfy3twe03',1794795749197920,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','key.make','key_m7h2kftdna1wx9hq','{"expires_at":"2026-11-17T02:22:29.197840+00:00","member":"mem_m7h2kfs8qwx86272","name":"spare","role_max":null}');
INSERT INTO "audit" VALUES('aud_m7h2kftftrqhyexe',1794795749199814,'org_m7h2kfs8evqw6j73','','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','key.revoke','key_m7h2kft56sysqgzx','{"member":"mem_m7h2kfs8qwx86272","name":"revoked"}');
INSERT INTO "audit" VALUES('aud_m7h2kftrnexnpzyk',1794795749208511,'org_m7h2kfs8evqw6j73','prj_m7h2kfs8xny4kfgj','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','instance.launch','ins_m7h2kftp6p3k6z4q','{"name":"web"}');
INSERT INTO "audit" VALUES('aud_m7h2kfv50y7fqzet',1794795749221783,'org_m7h2kfs8evqw6j73','prj_m7h2kfs8xny4kfgj','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','instance.snapshot','ins_m7h2kftp6p3k6z4q','{"name":"web"}');
INSERT INTO "audit" VALUES('aud_m7h2kfvc2xjb1b6a',1794795749228836,'org_m7h2kfs8evqw6j73','prj_m7h2kfs8xny4kfgj','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','instance.publish','ins_m7h2kftp6p3k6z4q','{"name":"web"}');
INSERT INTO "audit" VALUES('aud_m7h2kfvcrgmay26r',1794795749228925,'org_m7h2kfs8evqw6j73','prj_m7h2kfs8xny4kfgj','key_m7h2kfs8qecgheqc','mem_m7h2kfs8qwx86272','image.make','img_m7h2kfvc6k44jczv','{"name":"tools"}');
CREATE TABLE bill_cursor (
    name TEXT PRIMARY KEY,
    intervals BIGINT NOT NULL,    -- up to this number they are charged
    charges BIGINT NOT NULL,      -- the number of the newest
    entries BIGINT NOT NULL,
    booked_until_us BIGINT NOT NULL, -- days are closed up to here
    latest_us BIGINT NOT NULL     -- the end of the latest time charged: no price or purchase begins before
);
INSERT INTO "bill_cursor" VALUES('bill',0,1,1,1794787200000000,1794795749248111);
CREATE TABLE bill_profile (
    project_id TEXT PRIMARY KEY,
    currency TEXT NOT NULL,
    pays TEXT NOT NULL,           -- invoice or prepaid
    tax_name TEXT NOT NULL,
    tax_bp BIGINT NOT NULL,
    customer TEXT NOT NULL,       -- lines of an address, for invoices
    CHECK (tax_bp >= 0)
);
CREATE TABLE budget (
    project_id TEXT PRIMARY KEY,
    currency TEXT NOT NULL,
    micros BIGINT NOT NULL,       -- a calendar month, UTC
    levels TEXT NOT NULL,         -- JSON: percents
    hard_stop BIGINT NOT NULL,
    notice_seconds BIGINT NOT NULL, -- how long before the hard stop it is announced
    CHECK (micros >= 0)
);
INSERT INTO "budget" VALUES('prj_m7h2kfs8xny4kfgj','USD',1000000000000,'[50,80,100]',0,3600);
CREATE TABLE budget_notice (
    project_id TEXT NOT NULL,
    month TEXT NOT NULL,
    kind TEXT NOT NULL,           -- level, announced or stopped
    level BIGINT NOT NULL,        -- percent; 0 where the kind needs none
    at_us BIGINT NOT NULL,
    spent_micros BIGINT NOT NULL,
    limit_micros BIGINT NOT NULL,
    PRIMARY KEY (project_id, month, kind, level)
);
CREATE TABLE charge (
    number BIGINT PRIMARY KEY,    -- 1, 2, 3 … in the order they were booked
    subject TEXT NOT NULL,        -- the instance, or the purchase
    generation BIGINT NOT NULL,
    sequence BIGINT NOT NULL,     -- of the interval, or of the purchase's term
    segment BIGINT NOT NULL,      -- counts the charges of one interval or term
    kind TEXT NOT NULL,           -- usage, fee, refund or reversal
    reverses BIGINT NOT NULL,     -- a reversal: the segment that it takes back; else -1
    project_id TEXT NOT NULL,
    month TEXT NOT NULL,          -- 2026-11, of the time it is for
    from_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL,
    currency TEXT NOT NULL,
    micros BIGINT NOT NULL,
    gpu_micros BIGINT NOT NULL,
    vcpu_micros BIGINT NOT NULL,
    ram_micros BIGINT NOT NULL,
    disk_micros BIGINT NOT NULL,
    snapshot_micros BIGINT NOT NULL,
    address_micros BIGINT NOT NULL,
    egress_micros BIGINT NOT NULL,
    minimum_micros BIGINT NOT NULL, -- what a short run costs beyond its time
    fee_micros BIGINT NOT NULL,
    list_micros BIGINT NOT NULL,  -- what all that was held would have cost on demand, without any discount
    gpu TEXT NOT NULL,
    gpus BIGINT NOT NULL,
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    snapshots_bytes BIGINT NOT NULL,
    addresses BIGINT NOT NULL,
    egress_bytes BIGINT NOT NULL,
    mode TEXT NOT NULL,
    purchase_id TEXT NOT NULL,    -- what covered part or all of it; empty: nothing
    version BIGINT NOT NULL,      -- of the price book; 0: there was no price
    discount_bp BIGINT NOT NULL,
    host TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    member TEXT NOT NULL,
    labels TEXT NOT NULL,         -- JSON object
    booked_at_us BIGINT NOT NULL,
    UNIQUE (subject, sequence, segment, generation),
    CHECK (until_us >= from_us),
    CHECK (micros = gpu_micros + vcpu_micros + ram_micros + disk_micros + snapshot_micros + address_micros
        + egress_micros + minimum_micros + fee_micros)
);
INSERT INTO "charge" VALUES(1,'pur_m7h2kfw0w1ma0s2y',0,0,0,'fee',-1,'prj_m7h2kfs8xny4kfgj','2026-11',1794795749248111,1797387749248111,'USD',2477500000,0,0,0,0,0,0,0,0,2477500000,2477500000,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'monthly','pur_m7h2kfw0w1ma0s2y',0,0,'hst_m7h2kfrzaxkdfj9n','home','web','mem_m7h2kfs8qwx86272','{"team":"red"}',1794795749248111);
CREATE TABLE charge_sum (
    project_id TEXT NOT NULL,
    month TEXT NOT NULL,
    currency TEXT NOT NULL,
    gpu TEXT NOT NULL,
    member TEXT NOT NULL,
    labels TEXT NOT NULL,
    kind TEXT NOT NULL,
    lines BIGINT NOT NULL,
    micros BIGINT NOT NULL,
    list_micros BIGINT NOT NULL,
    PRIMARY KEY (project_id, month, currency, gpu, member, labels, kind)
);
INSERT INTO "charge_sum" VALUES('prj_m7h2kfs8xny4kfgj','2026-11','USD','V100-SXM2','mem_m7h2kfs8qwx86272','{"team":"red"}','fee',1,2477500000,2477500000);
CREATE TABLE credit_grant (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    currency TEXT NOT NULL,
    micros BIGINT NOT NULL,
    from_us BIGINT NOT NULL,      -- pays for what was used from then on
    expires_us BIGINT NOT NULL,   -- and before then
    drawn_micros BIGINT NOT NULL,
    expired BIGINT NOT NULL,      -- 1: what was left has lapsed
    moves BIGINT NOT NULL,        -- counts its entries in the ledger
    CHECK (drawn_micros >= 0 AND drawn_micros <= micros)
);
CREATE TABLE event (
    id TEXT PRIMARY KEY,
    at_us BIGINT NOT NULL,     -- microseconds since 1970, UTC
    kind TEXT NOT NULL,        -- noun.verb_in_the_past
    subject TEXT NOT NULL,
    details TEXT NOT NULL      -- JSON object
, project_id TEXT NOT NULL DEFAULT '');
INSERT INTO "event" VALUES('evt_m7h2kftp5n5yze1e',1794795749206418,'instance.moved','ins_m7h2kftp6p3k6z4q','{"sequence":1,"generation":0,"name":"web","from":"","to":"queued","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_m7h2kfrzaxkdfj9n","region":"home","member":"mem_m7h2kfs8qwx86272","mode":"on-demand","labels":"{\"team\":\"red\"}","wanted":"running","asked_at_us":1794795749206418}','prj_m7h2kfs8xny4kfgj');
INSERT INTO "event" VALUES('evt_m7h2kftwh7db35t0',1794795749212600,'instance.moved','ins_m7h2kftp6p3k6z4q','{"sequence":2,"generation":1,"name":"web","from":"queued","to":"starting","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_m7h2kfrzaxkdfj9n","region":"home","member":"mem_m7h2kfs8qwx86272","mode":"on-demand","labels":"{\"team\":\"red\"}","wanted":"running","asked_at_us":1794795749206418}','prj_m7h2kfs8xny4kfgj');
INSERT INTO "event" VALUES('evt_m7h2kfv10rmyavfd',1794795749217512,'instance.moved','ins_m7h2kftp6p3k6z4q','{"sequence":3,"generation":1,"name":"web","from":"starting","to":"running","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_m7h2kfrzaxkdfj9n","region":"home","member":"mem_m7h2kfs8qwx86272","mode":"on-demand","labels":"{\"team\":\"red\"}","wanted":"running","asked_at_us":1794795749206418}','prj_m7h2kfs8xny4kfgj');
INSERT INTO "event" VALUES('evt_m7h2kfw06j43ewj8',1794795749248111,'purchase.bought','pur_m7h2kfw0w1ma0s2y','{"term":0,"instance":"ins_m7h2kftp6p3k6z4q","mode":"monthly","years":0,"upfront":0,"from_us":1794795749248111,"until_us":1797387749248111,"gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"currency":"USD","fee_micros":2477500000,"host":"hst_m7h2kfrzaxkdfj9n","region":"home","version":1,"name":"web","member":"mem_m7h2kfs8qwx86272","labels":"{\"team\":\"red\"}"}','prj_m7h2kfs8xny4kfgj');
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
    seen_at_us BIGINT NOT NULL, region TEXT NOT NULL DEFAULT 'home',
    UNIQUE (site, name)
);
INSERT INTO "host" VALUES('hst_m7h2kfrzmda00pkp','simulated','simulated-0001','ready','198.18.0.1',32,206158430208,2199023255552,1,1794795749151613,1794795749230763,'home');
INSERT INTO "host" VALUES('hst_m7h2kfrzaxkdfj9n','simulated','simulated-0002','ready','198.18.0.2',32,206158430208,2199023255552,1,1794795749151613,1794795749230763,'home');
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
INSERT INTO "host_gpu" VALUES('hst_m7h2kfrzmda00pkp','0000:01:00.0','physical','V100-SXM2','Simulated Tesla V100 SXM2 16 GB',16944988160,1,NULL,NULL);
INSERT INTO "host_gpu" VALUES('hst_m7h2kfrzmda00pkp','0000:02:00.0','physical','V100-SXM2','Simulated Tesla V100 SXM2 16 GB',16944988160,1,NULL,NULL);
INSERT INTO "host_gpu" VALUES('hst_m7h2kfrzaxkdfj9n','0000:01:00.0','physical','V100-SXM2','Simulated Tesla V100 SXM2 16 GB',16944988160,1,'ins_m7h2kftp6p3k6z4q',NULL);
INSERT INTO "host_gpu" VALUES('hst_m7h2kfrzaxkdfj9n','0000:02:00.0','physical','V100-SXM2','Simulated Tesla V100 SXM2 16 GB',16944988160,1,NULL,NULL);
CREATE TABLE host_port (
    host_id TEXT NOT NULL REFERENCES host (id),
    port BIGINT NOT NULL,
    guest_port BIGINT NOT NULL,
    instance_id TEXT NOT NULL,
    PRIMARY KEY (host_id, port)
);
INSERT INTO "host_port" VALUES('hst_m7h2kfrzaxkdfj9n',20000,22,'ins_m7h2kftp6p3k6z4q');
INSERT INTO "host_port" VALUES('hst_m7h2kfrzaxkdfj9n',20001,8888,'ins_m7h2kftp6p3k6z4q');
CREATE TABLE idempotency (
    scope TEXT NOT NULL,        -- the project or organisation the key counts in
    key TEXT NOT NULL,
    digest TEXT NOT NULL,       -- of the request: the same key for another request is refused
    answer TEXT NOT NULL,       -- JSON: what was made
    created_at_us BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);
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
INSERT INTO "image" VALUES('img_m7h2kfs5zsw1ypv5','','base','base','ready','',67108864,'',1794795749157440);
INSERT INTO "image" VALUES('img_m7h2kfvc6k44jczv','prj_m7h2kfs8xny4kfgj','tools','','ready','',0,'ins_m7h2kftp6p3k6z4q',1794795749228385);
CREATE TABLE installation (
    id TEXT PRIMARY KEY,        -- marks all that this installation makes on an engine; one row
    made_at_us BIGINT NOT NULL
);
INSERT INTO "installation" VALUES('tera_m7h2kfmcev64rqjr',1794795749004105);
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
    settled BIGINT NOT NULL, held_snapshots_bytes BIGINT NOT NULL DEFAULT 0,    -- 1: nothing to do; the loop does not load it
    UNIQUE (project_id, address)
);
INSERT INTO "instance" VALUES('ins_m7h2kftp6p3k6z4q','prj_m7h2kfs8xny4kfgj','web','running',1794795749206418,'running','V100-SXM2',1,16,102005473280,34359738368,16,102005473280,34359738368,'base','jupyter','{"authorized_keys":[],"command":[],"user_data":"","labels":{"team":"red"},"environment":{},"jupyter_token":"5397bec44a896fb77e99c86f5e64bcc6c3219499236605be","image_id":"img_m7h2kfs5zsw1ypv5","mode":"on-demand"}','hst_m7h2kfrzaxkdfj9n','10.128.16.16','ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF3B2+KEAyrNFsr2lR7/0qofaezWgBrXQ4pcqUIcuZSF','',NULL,1794795749206418,'mem_m7h2kfs8qwx86272',1794795749217512,NULL,'','','',0,0,0,3,3,1794795749232621,'',15,1,0);
CREATE TABLE instance_output (
    instance_id TEXT PRIMARY KEY,
    log TEXT NOT NULL           -- the end of what its command wrote
);
CREATE TABLE invoice (
    number BIGINT PRIMARY KEY,    -- 1, 2, 3 … without a gap
    project_id TEXT NOT NULL,
    month TEXT NOT NULL,
    currency TEXT NOT NULL,
    charges_after BIGINT NOT NULL, -- the charges it is made of: numbers behind this one …
    charges_until BIGINT NOT NULL, -- … up to this one
    usage_micros BIGINT NOT NULL,
    credit_micros BIGINT NOT NULL,
    tax_micros BIGINT NOT NULL,
    paid_micros BIGINT NOT NULL,  -- from the prepaid balance
    due_micros BIGINT NOT NULL,
    issued_at_us BIGINT NOT NULL,
    document TEXT NOT NULL,       -- JSON: all that stands on it
    UNIQUE (project_id, month),
    CHECK (due_micros = usage_micros - credit_micros + tax_micros - paid_micros)
);
CREATE TABLE ledger (
    number BIGINT PRIMARY KEY,    -- 1, 2, 3 …
    at_us BIGINT NOT NULL,
    kind TEXT NOT NULL,
    project_id TEXT NOT NULL,
    debit TEXT NOT NULL,
    credit TEXT NOT NULL,
    currency TEXT NOT NULL,
    micros BIGINT NOT NULL,
    subject TEXT NOT NULL,        -- with the next three and the kind: an entry is made once
    generation BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    segment BIGINT NOT NULL,
    UNIQUE (subject, sequence, segment, generation, kind),
    CHECK (micros > 0),
    CHECK (debit <> credit)
);
INSERT INTO "ledger" VALUES(1,1794795749248111,'charge','prj_m7h2kfs8xny4kfgj','project/prj_m7h2kfs8xny4kfgj','revenue','USD',2477500000,'pur_m7h2kfw0w1ma0s2y',0,0,0);
CREATE TABLE member (
    id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisation (id),
    name TEXT NOT NULL,
    is_operator BIGINT NOT NULL,  -- runs the house: hosts, organisations
    created_at_us BIGINT NOT NULL,
    removed_at_us BIGINT,
    UNIQUE (organisation_id, name)
);
INSERT INTO "member" VALUES('mem_m7h2kfmc3yzhex1g','org_m7h2kfmcedgmb9vz','operator',1,1794795749004189,NULL);
INSERT INTO "member" VALUES('mem_m7h2kfs8qwx86272','org_m7h2kfs8evqw6j73','owner@acme',0,1794795749160190,NULL);
INSERT INTO "member" VALUES('mem_m7h2kfsctvrgq5c5','org_m7h2kfsctz8wc9gc','owner@other',0,1794795749164703,NULL);
INSERT INTO "member" VALUES('mem_m7h2kfskz6qvs264','org_m7h2kfs8evqw6j73','member@acme',0,1794795749171310,NULL);
INSERT INTO "member" VALUES('mem_m7h2kfsqwnpe41c1','org_m7h2kfs8evqw6j73','viewer@acme',0,1794795749175398,NULL);
INSERT INTO "member" VALUES('mem_m7h2kfstn5ppect1','org_m7h2kfs8evqw6j73','billing@acme',0,1794795749178163,NULL);
INSERT INTO "member" VALUES('mem_m7h2kft1wytb96mn','org_m7h2kfs8evqw6j73','local@acme',0,1794795749185754,NULL);
CREATE TABLE member_role (
    member_id TEXT NOT NULL REFERENCES member (id),
    project_id TEXT NOT NULL,   -- empty: every project of the organisation
    role TEXT NOT NULL,
    PRIMARY KEY (member_id, project_id)
);
INSERT INTO "member_role" VALUES('mem_m7h2kfmc3yzhex1g','','owner');
INSERT INTO "member_role" VALUES('mem_m7h2kfs8qwx86272','','owner');
INSERT INTO "member_role" VALUES('mem_m7h2kfsctvrgq5c5','','owner');
INSERT INTO "member_role" VALUES('mem_m7h2kfskz6qvs264','','member');
INSERT INTO "member_role" VALUES('mem_m7h2kfsqwnpe41c1','','viewer');
INSERT INTO "member_role" VALUES('mem_m7h2kfstn5ppect1','','billing');
INSERT INTO "member_role" VALUES('mem_m7h2kft1wytb96mn','prj_m7h2kfsgt5he4a0r','member');
CREATE TABLE meter_behind (
    instance_id TEXT PRIMARY KEY
);
CREATE TABLE meter_cursor (
    name TEXT PRIMARY KEY,
    event_id TEXT NOT NULL,       -- the newest event that was read
    intervals BIGINT NOT NULL     -- how many were made so far: the number of the newest
);
INSERT INTO "meter_cursor" VALUES('meter','evt_m7h2kfv10rmyavfd',0);
INSERT INTO "meter_cursor" VALUES('readings','',0);
CREATE TABLE meter_instance (
    instance_id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,     -- of the last change taken; all before it were taken too
    generation BIGINT NOT NULL,   -- of the change that opened what is open
    at_us BIGINT NOT NULL,        -- when it took effect; no later change takes effect before
    phase TEXT NOT NULL,
    open_sequence BIGINT,         -- of the change from which on it holds what follows; NULL: nothing that is charged
    from_us BIGINT NOT NULL,
    run_us BIGINT,                -- when the run began; NULL: does not run
    run_sequence BIGINT,          -- of the change that began it: two runs may begin at one time
    held TEXT NOT NULL            -- JSON: see meter/model.py
);
INSERT INTO "meter_instance" VALUES('ins_m7h2kftp6p3k6z4q','prj_m7h2kfs8xny4kfgj',3,1,1794795749217512,'running',3,1794795749217512,1794795749217512,3,'{"gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"addresses":0,"mode":"on-demand","host":"hst_m7h2kfrzaxkdfj9n","region":"home","name":"web","member":"mem_m7h2kfs8qwx86272","labels":"{\"team\":\"red\"}"}');
CREATE TABLE meter_interval (
    number BIGINT PRIMARY KEY,    -- 1, 2, 3 … in the order they were made
    instance_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,     -- of the change that opened it
    revision BIGINT NOT NULL,     -- the highest counts: a stop may reach back behind later changes
    generation BIGINT NOT NULL,
    project_id TEXT NOT NULL,
    from_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL,
    run_us BIGINT,                -- when the run it is part of began; NULL: part of none
    ends_run BIGINT NOT NULL,     -- 1: the run ended with it
    house_fault BIGINT NOT NULL,  -- 1: and the tenant did not end it
    gpu TEXT NOT NULL,
    gpus BIGINT NOT NULL,
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    snapshots_bytes BIGINT NOT NULL,
    addresses BIGINT NOT NULL,
    mode TEXT NOT NULL,
    host TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    member TEXT NOT NULL,
    labels TEXT NOT NULL,         -- JSON object
    UNIQUE (instance_id, sequence, revision),
    CHECK (until_us >= from_us)
);
CREATE TABLE meter_reading (
    number BIGINT PRIMARY KEY,    -- 1, 2, 3 … in the order they were made
    instance_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,     -- of the instance's newest event then: it says where it was and whose
    epoch TEXT NOT NULL,          -- the counter's life: another one began at nothing
    bytes BIGINT NOT NULL,
    bytes_before BIGINT NOT NULL, -- the reading before in this epoch; 0: none
    at_us BIGINT NOT NULL,        -- never in a day that was closed before
    UNIQUE (instance_id, epoch, bytes),
    CHECK (bytes > bytes_before AND bytes_before >= 0)
);
CREATE TABLE offer (
    import_number BIGINT NOT NULL,
    place TEXT NOT NULL,
    source TEXT NOT NULL,
    provider TEXT NOT NULL,
    kind TEXT NOT NULL,
    standing TEXT NOT NULL,
    id BIGINT NOT NULL,
    cited TEXT NOT NULL,
    region TEXT NOT NULL,
    zone TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    gpu TEXT NOT NULL,
    gpu_name TEXT NOT NULL,
    gpu_count BIGINT,
    gpu_share DOUBLE PRECISION NOT NULL,
    gpu_memory_bytes BIGINT,
    gpu_tflops DOUBLE PRECISION,
    vcpus DOUBLE PRECISION,
    cpu TEXT NOT NULL,
    ram_bytes BIGINT,
    disk_gb DOUBLE PRECISION,
    network_gbps DOUBLE PRECISION,
    mode TEXT,
    term_months BIGINT,
    quoted_micros BIGINT,
    quoted_per TEXT,
    basis TEXT NOT NULL,
    currency TEXT NOT NULL,
    price_micros_per_month BIGINT,
    since TEXT NOT NULL,
    as_of TEXT NOT NULL,
    until TEXT NOT NULL,
    flags TEXT NOT NULL,
    note TEXT NOT NULL
);
CREATE TABLE offer_count (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    gpu TEXT NOT NULL,
    standing TEXT NOT NULL,
    as_of TEXT NOT NULL,
    offers BIGINT NOT NULL,
    PRIMARY KEY (kind, gpu, standing, as_of, source)
);
CREATE TABLE offer_past (
    import_number BIGINT NOT NULL,
    place TEXT NOT NULL,
    source TEXT NOT NULL,
    provider TEXT NOT NULL,
    kind TEXT NOT NULL,
    standing TEXT NOT NULL,
    id BIGINT NOT NULL,
    cited TEXT NOT NULL,
    region TEXT NOT NULL,
    zone TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    gpu TEXT NOT NULL,
    gpu_name TEXT NOT NULL,
    gpu_count BIGINT,
    gpu_share DOUBLE PRECISION NOT NULL,
    gpu_memory_bytes BIGINT,
    gpu_tflops DOUBLE PRECISION,
    vcpus DOUBLE PRECISION,
    cpu TEXT NOT NULL,
    ram_bytes BIGINT,
    disk_gb DOUBLE PRECISION,
    network_gbps DOUBLE PRECISION,
    mode TEXT,
    term_months BIGINT,
    quoted_micros BIGINT,
    quoted_per TEXT,
    basis TEXT NOT NULL,
    currency TEXT NOT NULL,
    price_micros_per_month BIGINT,
    since TEXT NOT NULL,
    as_of TEXT NOT NULL,
    until TEXT NOT NULL,
    flags TEXT NOT NULL,
    note TEXT NOT NULL
);
CREATE TABLE offer_shape (
    source TEXT NOT NULL,
    provider TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    kind TEXT NOT NULL,
    gpu TEXT NOT NULL,
    gpu_name TEXT NOT NULL,
    gpu_count BIGINT,
    gpu_share DOUBLE PRECISION NOT NULL,
    gpu_memory_bytes BIGINT,
    vcpus DOUBLE PRECISION,
    ram_bytes BIGINT,
    mode TEXT,
    term_months BIGINT,
    standing TEXT NOT NULL,
    currency TEXT NOT NULL,
    doubtful BIGINT NOT NULL,
    price_micros_per_month BIGINT,
    offers BIGINT NOT NULL,
    as_of TEXT NOT NULL
);
CREATE TABLE offer_source (
    name TEXT NOT NULL PRIMARY KEY,
    layout TEXT NOT NULL,
    import_number BIGINT NOT NULL,
    place TEXT NOT NULL,
    checksum TEXT NOT NULL,
    as_of TEXT NOT NULL,
    imported_at TEXT NOT NULL,
    offers BIGINT NOT NULL,
    currencies TEXT NOT NULL,
    url TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified TEXT NOT NULL
);
CREATE TABLE organisation (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at_us BIGINT NOT NULL
);
INSERT INTO "organisation" VALUES('org_m7h2kfmcedgmb9vz','house',1794795749004189);
INSERT INTO "organisation" VALUES('org_m7h2kfs8evqw6j73','acme',1794795749160190);
INSERT INTO "organisation" VALUES('org_m7h2kfsctz8wc9gc','other',1794795749164703);
CREATE TABLE price_book (
    version BIGINT PRIMARY KEY,
    taken_at_us BIGINT NOT NULL,
    member TEXT NOT NULL,         -- who brought it
    text TEXT NOT NULL            -- as it was given
);
INSERT INTO "price_book" VALUES(1,1794795749239302,'mem_m7h2kfmc3yzhex1g','- {from: 2026-01-01, currency: USD, gpu: {V100: 3/hour}, vcpu: 0.01/hour, ram: 0.002/hour, disk: 1/month}
');
CREATE TABLE price_period (
    version BIGINT NOT NULL REFERENCES price_book (version),
    from_us BIGINT NOT NULL,      -- never before the book was taken: the past keeps its prices
    until_us BIGINT NOT NULL,
    prices TEXT NOT NULL,         -- JSON: see bill/price/model.py
    PRIMARY KEY (version, from_us),
    CHECK (until_us > from_us)
);
INSERT INTO "price_period" VALUES(1,1794795749239302,4611686018427387904,'{"currency":"USD","rates":{"CNY":7189000,"EUR":924000,"GBP":783000,"JPY":151353000,"USD":1000000},"house":{"gpu":{"V100-PCIe":{"on_demand":2190000000,"monthly":null,"spot":null},"V100-PCIe-32":{"on_demand":2190000000,"monthly":null,"spot":null},"V100-SXM2":{"on_demand":2190000000,"monthly":null,"spot":null},"V100-SXM2-32":{"on_demand":2190000000,"monthly":null,"spot":null}},"vcpu":{"on_demand":7300000,"monthly":null,"spot":null},"ram":{"on_demand":1460000,"monthly":null,"spot":null},"disk":{"on_demand":1000000,"monthly":null,"spot":null},"snapshot":null,"address":null,"egress":null},"regions":{},"hosts":{},"minimum_seconds":0,"monthly_bp":0,"spot_bp":0,"reserved_bp":{},"upfront_bp":0,"long_term":[],"refund_bp":0,"tax_name":"","tax_bp":0}');
CREATE TABLE project (
    id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisation (id),
    name TEXT NOT NULL,
    quota TEXT NOT NULL,        -- JSON, see tenant/model.py
    network_number BIGINT NOT NULL,  -- which part of the address range is the project's own
    created_at_us BIGINT NOT NULL,
    removed_at_us BIGINT        -- its row stays: instances that are gone, and bills, still name it
);
INSERT INTO "project" VALUES('prj_m7h2kfmc2tesrehe','org_m7h2kfmcedgmb9vz','default','{"disk_bytes":null,"gpus":{},"gpus_default":null,"instances":null,"ram_bytes":null,"vcpus":null}',0,1794795749004189,NULL);
INSERT INTO "project" VALUES('prj_m7h2kfs8xny4kfgj','org_m7h2kfs8evqw6j73','default','{"disk_bytes":null,"gpus":{},"gpus_default":null,"instances":null,"ram_bytes":null,"vcpus":null}',1,1794795749160190,NULL);
INSERT INTO "project" VALUES('prj_m7h2kfsc1f2zxzss','org_m7h2kfsctz8wc9gc','default','{"disk_bytes":null,"gpus":{},"gpus_default":null,"instances":null,"ram_bytes":null,"vcpus":null}',2,1794795749164703,NULL);
INSERT INTO "project" VALUES('prj_m7h2kfsgt5he4a0r','org_m7h2kfs8evqw6j73','empty','{"disk_bytes":null,"gpus":{},"gpus_default":null,"instances":null,"ram_bytes":null,"vcpus":null}',3,1794795749168738,NULL);
CREATE TABLE purchase (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    mode TEXT NOT NULL,           -- monthly or reserved
    years BIGINT NOT NULL,        -- reserved for; 0: monthly
    upfront BIGINT NOT NULL,      -- 1: all was paid at once
    renews BIGINT NOT NULL,
    due_us BIGINT NOT NULL,       -- when its next term begins
    ended BIGINT NOT NULL         -- 1: nothing is to come
);
INSERT INTO "purchase" VALUES('pur_m7h2kfw0w1ma0s2y','prj_m7h2kfs8xny4kfgj','ins_m7h2kftp6p3k6z4q','monthly',0,0,1,1797387749248111,0);
CREATE TABLE purchase_term (
    purchase_id TEXT NOT NULL REFERENCES purchase (id),
    sequence BIGINT NOT NULL,
    kind TEXT NOT NULL,           -- bought, continued, renewed, upgraded or ended
    instance_id TEXT NOT NULL,
    from_us BIGINT NOT NULL,
    until_us BIGINT NOT NULL,
    gpu TEXT NOT NULL,
    gpus BIGINT NOT NULL,
    vcpus BIGINT NOT NULL,
    ram_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    currency TEXT NOT NULL,
    month_micros BIGINT NOT NULL, -- what a whole month of it costs
    fee_micros BIGINT NOT NULL,   -- due at from_us; below zero: given back
    PRIMARY KEY (purchase_id, sequence)
);
INSERT INTO "purchase_term" VALUES('pur_m7h2kfw0w1ma0s2y',0,'bought','ins_m7h2kftp6p3k6z4q',1794795749248111,1797387749248111,'V100-SXM2',1,16,102005473280,34359738368,'USD',2477500000,2477500000);
CREATE TABLE schema_migration (version BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO "schema_migration" VALUES(1,'events','9cb51711ab5f2e7758c637f053b9a312e960c2281c8d886624c1d824f660682c','2026-11-16T02:22:28.967049+00:00');
INSERT INTO "schema_migration" VALUES(2,'offers','86f0d2802918315f84799fe25959243e6c47ef97f1387c57797647614d541516','2026-11-16T02:22:28.968833+00:00');
INSERT INTO "schema_migration" VALUES(3,'offer_shapes','a41866dfc3b324286667bab8f7a22c655c6d375baabfc5fb287dc4111f717c90','2026-11-16T02:22:28.970002+00:00');
INSERT INTO "schema_migration" VALUES(4,'cloud','2d6c1e05b8afbe322a78034d9178c7e3695eb49bea3fccec133ab3f7027c3559','2026-11-16T02:22:28.974351+00:00');
INSERT INTO "schema_migration" VALUES(5,'bill','8febc88cffac868b9972f8ca737136dc4a8a464896114eab8bd4538703c1f901','2026-11-16T02:22:28.980294+00:00');
INSERT INTO "schema_migration" VALUES(6,'quantities','552f2d5593f558bf5b46d6bff4eae12d5b44df24510ff072ead5b601735604f3','2026-11-16T02:22:29.001060+00:00');
INSERT INTO "schema_migration" VALUES(7,'bill_by_name','47e6e171c1e0f1d59c08e1fbe636d0d241ca5d6bd57d76bb97f6464a0ee198a8','2026-11-16T02:22:29.002354+00:00');
INSERT INTO "schema_migration" VALUES(8,'bill_by_project','a58c9cc5ad8fa0f44914305393f57a3f6b69003ba4668ea8ea02199354953992','2026-11-16T02:22:29.003293+00:00');
CREATE TABLE snapshot (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    instance_id TEXT NOT NULL REFERENCES instance (id),
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at_us BIGINT NOT NULL, size_bytes BIGINT NOT NULL DEFAULT 0,
    UNIQUE (instance_id, name)
);
INSERT INTO "snapshot" VALUES('snp_m7h2kfv426yjv74p','prj_m7h2kfs8xny4kfgj','ins_m7h2kftp6p3k6z4q','before','ready',1794795749220528,0);
CREATE TABLE trial_balance (
    currency TEXT PRIMARY KEY,
    debits BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    CHECK (debits = credits)
);
INSERT INTO "trial_balance" VALUES('USD',2477500000,2477500000);
CREATE TABLE worker (
    id TEXT PRIMARY KEY,
    until_us BIGINT NOT NULL
);
INSERT INTO "worker" VALUES('19075-2675bad78366',1794795755229923);
CREATE INDEX event_by_kind ON event (kind, id);
CREATE INDEX offer_by_gpu ON offer (gpu, standing, currency, price_micros_per_month, as_of) WHERE gpu <> '';
CREATE INDEX offer_by_kind ON offer (kind, standing, currency, price_micros_per_month, as_of);
CREATE INDEX offer_past_by_gpu ON offer_past (gpu, since) WHERE gpu <> '';
CREATE INDEX offer_shape_by_source ON offer_shape (source);
CREATE UNIQUE INDEX project_by_name ON project (organisation_id, name) WHERE removed_at_us IS NULL;
CREATE UNIQUE INDEX project_by_network ON project (network_number) WHERE network_number >= 0;
CREATE INDEX api_key_by_member ON api_key (member_id);
CREATE INDEX audit_by_organisation ON audit (organisation_id, id);
CREATE INDEX event_by_project ON event (project_id, id);
CREATE INDEX event_by_subject ON event (subject, id);
CREATE INDEX host_gpu_by_instance ON host_gpu (instance_id);
CREATE INDEX host_port_by_instance ON host_port (instance_id);
CREATE INDEX instance_by_project ON instance (project_id, id);
CREATE UNIQUE INDEX instance_by_name ON instance (project_id, name) WHERE phase <> 'gone';
CREATE INDEX instance_by_host ON instance (host_id);
CREATE INDEX instance_due ON instance (due_at_us, id) WHERE settled = 0;
CREATE INDEX meter_instance_open ON meter_instance (project_id, instance_id) WHERE open_sequence IS NOT NULL;
CREATE INDEX ledger_payments ON ledger (project_id, number) WHERE kind NOT IN ('charge', 'reversal');
CREATE INDEX purchase_by_project ON purchase (project_id, id);
CREATE INDEX purchase_due ON purchase (due_us, id) WHERE ended = 0;
CREATE INDEX purchase_term_by_instance ON purchase_term (instance_id, from_us);
CREATE INDEX credit_grant_by_project ON credit_grant (project_id, expires_us);
CREATE INDEX meter_reading_by_time ON meter_reading (at_us, instance_id);
CREATE INDEX meter_reading_by_instance ON meter_reading (instance_id, at_us);
CREATE INDEX charge_by_project ON charge (project_id, month, number, name, micros);
COMMIT;