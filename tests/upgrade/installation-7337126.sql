-- Made by scripts/old-installation. Keys: tera_kz3dkwm0yv3jgmcg_41d52c5f7de313a1c8b36ad3362a0a7d204c9ec74634a366e9af4e582bd57841 (operator), tera_kz3dkwm0pybg8wed_002b33e2f74b5a446c2808383cdd75ee6300f45a41dc506eca10434bf76c3e49 (owner of acme).
BEGIN TRANSACTION;
CREATE TABLE account (
    name TEXT NOT NULL,
    currency TEXT NOT NULL,
    debits BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    PRIMARY KEY (name, currency),
    CHECK (debits >= 0 AND credits >= 0)
);
INSERT INTO "account" VALUES('credit/crd_kz3dkwm0yq835hq7','USD',5000000,5000000);
INSERT INTO "account" VALUES('promotion','USD',5000000,0);
INSERT INTO "account" VALUES('project/prj_kz3dkwm0e4pjmq3m','USD',20525260,0);
INSERT INTO "account" VALUES('project/prj_kz3dkwm0h5x428ch','USD',4744180692,105000000);
INSERT INTO "account" VALUES('revenue','USD',0,3972223161);
INSERT INTO "account" VALUES('tax','USD',0,792482791);
INSERT INTO "account" VALUES('cash','USD',100000000,0);
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
INSERT INTO "api_key" VALUES('key_kz3dkwm0yv3jgmcg','mem_kz3dkwm0rycrsnzb','first','b8ab4bcb3be5cac370ab73d604626e1aa7be11d058c582872b84b30952fabbac','','',1785747600000000,NULL,NULL);
INSERT INTO "api_key" VALUES('key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','first','819f804218fae0ea9f630e05b0d073a27c1af3d936f93f6a95b16b2a2b073f12','','',1785747600000000,NULL,NULL);
INSERT INTO "api_key" VALUES('key_kz3dkwm0tf5vmzvw','mem_kz3dkwm0pyjz1qa4','first','834b18ca600d9486d1ff0217921a5da80215a569ffb6b8fcae9b9128efc67ba4','','',1785747600000000,NULL,NULL);
INSERT INTO "api_key" VALUES('key_kz3dkwm00nr7yt69','mem_kz3dkwm0rzspxp68','member','afae5d4d64990a68c65848d404fc6811a14c48fca9927c0630ef452507155f8d','','',1785747600000000,1793523600000000,NULL);
INSERT INTO "api_key" VALUES('key_kz3dkwm003eq9n83','mem_kz3dkwm06faepvvs','viewer','25c2159e9a8e0078e5aa56c3ab087e878c9d04f610e0973155fb9ca50ea9ca77','','',1785747600000000,1793523600000000,NULL);
INSERT INTO "api_key" VALUES('key_kz3dkwm02e6m4t0r','mem_kz3dkwm0yavv40p5','billing','495c707f8ddb458f04021b626def3ff1fe8e3b13d2efe619b341cd98676b4d7b','','',1785747600000000,1793523600000000,NULL);
INSERT INTO "api_key" VALUES('key_kz3dkwm03veye4t3','mem_kz3dkwm0zpxtpwf4','spare','45b4bbfc931b724133998ffa48ffae2b7f6f6f8447ed36b63724fe030b7e8390','','viewer',1785747600000000,1785834000000000,1785747600000000);
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
INSERT INTO "audit" VALUES('aud_kz3dkwm0xfwav959',1785747600000000,'org_kz3dkwm06fv46bzs','prj_kz3dkwm0ctrzh212','key_kz3dkwm0yv3jgmcg','mem_kz3dkwm0rycrsnzb','house.install','tera_kz3dkwm06d6caat7','{}');
INSERT INTO "audit" VALUES('aud_kz3dkwm0pysd42cv',1785747600000000,'org_kz3dkwm06fv46bzs','prj_kz3dkwm0ctrzh212','key_kz3dkwm0yv3jgmcg','mem_kz3dkwm0rycrsnzb','image.make','img_kz3dkwm03998fb81','{"name":"base"}');
INSERT INTO "audit" VALUES('aud_kz3dkwm0b2k71fg2',1785747600000000,'org_kz3dkwm02hde376w','','key_kz3dkwm0yv3jgmcg','mem_kz3dkwm0rycrsnzb','organisation.make','org_kz3dkwm02hde376w','{"name":"acme","owner":"owner@acme"}');
INSERT INTO "audit" VALUES('aud_kz3dkwm0fwg35f4y',1785747600000000,'org_kz3dkwm0699ny4hr','','key_kz3dkwm0yv3jgmcg','mem_kz3dkwm0rycrsnzb','organisation.make','org_kz3dkwm0699ny4hr','{"name":"other","owner":"owner@other"}');
INSERT INTO "audit" VALUES('aud_kz3dkwm0edem3wjk',1785747600000000,'org_kz3dkwm02hde376w','','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','member.make','mem_kz3dkwm0rzspxp68','{"name":"member@acme","role":"member"}');
INSERT INTO "audit" VALUES('aud_kz3dkwm0an7gn64t',1785747600000000,'org_kz3dkwm02hde376w','','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','key.make','key_kz3dkwm00nr7yt69','{"expires_at":"2026-11-01T09:00:00+00:00","member":"mem_kz3dkwm0rzspxp68","name":"member","role_max":null}');
INSERT INTO "audit" VALUES('aud_kz3dkwm0qfvq8rha',1785747600000000,'org_kz3dkwm02hde376w','','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','member.make','mem_kz3dkwm06faepvvs','{"name":"viewer@acme","role":"viewer"}');
INSERT INTO "audit" VALUES('aud_kz3dkwm0gy4vf20y',1785747600000000,'org_kz3dkwm02hde376w','','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','key.make','key_kz3dkwm003eq9n83','{"expires_at":"2026-11-01T09:00:00+00:00","member":"mem_kz3dkwm06faepvvs","name":"viewer","role_max":null}');
INSERT INTO "audit" VALUES('aud_kz3dkwm0ee8x1erz',1785747600000000,'org_kz3dkwm02hde376w','','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','member.make','mem_kz3dkwm0yavv40p5','{"name":"billing@acme","role":"billing"}');
INSERT INTO "audit" VALUES('aud_kz3dkwm0j4wcap1n',1785747600000000,'org_kz3dkwm02hde376w','','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','key.make','key_kz3dkwm02e6m4t0r','{"expires_at":"2026-11-01T09:00:00+00:00","member":"mem_kz3dkwm0yavv40p5","name":"billing","role_max":null}');
INSERT INTO "audit" VALUES('aud_kz3dkwm0brwx9pz5',1785747600000000,'org_kz3dkwm02hde376w','','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','key.make','key_kz3dkwm03veye4t3','{"expires_at":"2026-08-04T09:00:00+00:00","member":"mem_kz3dkwm0zpxtpwf4","name":"spare","role_max":"viewer"}');
INSERT INTO "audit" VALUES('aud_kz3dkwm03zrv01pf',1785747600000000,'org_kz3dkwm02hde376w','','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','key.revoke','key_kz3dkwm03veye4t3','{"member":"mem_kz3dkwm0zpxtpwf4","name":"spare"}');
INSERT INTO "audit" VALUES('aud_kz3dkwm0q7612q01',1785747600000000,'org_kz3dkwm02hde376w','prj_kz3dkwm0hkws3gd2','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','project.make','prj_kz3dkwm0hkws3gd2','{"name":"empty"}');
INSERT INTO "audit" VALUES('aud_kz3h1r8079zt5ar7',1785751200000000,'org_kz3dkwm02hde376w','prj_kz3dkwm0h5x428ch','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','instance.launch','ins_kz3h1r808v4wsr9h','{"name":"web"}');
INSERT INTO "audit" VALUES('aud_kz3h1r80vbh1btvb',1785751200000000,'org_kz3dkwm02hde376w','prj_kz3dkwm0h5x428ch','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','instance.launch','ins_kz3h1r80pt62yxrv','{"name":"batch"}');
INSERT INTO "audit" VALUES('aud_kz3h1r808btpwqw0',1785751200000000,'org_kz3dkwm02hde376w','prj_kz3dkwm0h5x428ch','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','instance.launch','ins_kz3h1r806tdq3ert','{"name":"past"}');
INSERT INTO "audit" VALUES('aud_kz3h1r80me8fys0k',1785751200000000,'org_kz3dkwm0699ny4hr','prj_kz3dkwm0e4pjmq3m','key_kz3dkwm0tf5vmzvw','mem_kz3dkwm0pyjz1qa4','instance.launch','ins_kz3h1r80dbdtrp96','{"name":"theirs"}');
INSERT INTO "audit" VALUES('aud_kz6revv8cvvgwq6t',1785859633000000,'org_kz3dkwm02hde376w','prj_kz3dkwm0h5x428ch','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','instance.snapshot','ins_kz3h1r808v4wsr9h','{"name":"web"}');
INSERT INTO "audit" VALUES('aud_kz6revv869prz3px',1785859633000000,'org_kz3dkwm02hde376w','prj_kz3dkwm0h5x428ch','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','instance.publish','ins_kz3h1r808v4wsr9h','{"name":"web"}');
INSERT INTO "audit" VALUES('aud_kz6revv8zg0yh7w9',1785859633000000,'org_kz3dkwm02hde376w','prj_kz3dkwm0h5x428ch','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','image.make','img_kz6revv8ppdk59bx','{"name":"tools"}');
INSERT INTO "audit" VALUES('aud_kz6revv85w28d390',1785859633000000,'org_kz3dkwm02hde376w','prj_kz3dkwm0h5x428ch','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','instance.stop','ins_kz3h1r80pt62yxrv','{"name":"batch"}');
INSERT INTO "audit" VALUES('aud_kz6revv83jtq9kkm',1785859633000000,'org_kz3dkwm02hde376w','prj_kz3dkwm0h5x428ch','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','instance.delete','ins_kz3h1r806tdq3ert','{"name":"past"}');
INSERT INTO "audit" VALUES('aud_m0at0xv8mrjhaqyp',1787069233000000,'org_kz3dkwm02hde376w','prj_kz3dkwm0h5x428ch','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','instance.start','ins_kz3h1r80pt62yxrv','{"name":"batch"}');
INSERT INTO "audit" VALUES('aud_m0jh73tgykm6aed6',1787328434000000,'org_kz3dkwm02hde376w','prj_kz3dkwm0h5x428ch','key_kz3dkwm0pybg8wed','mem_kz3dkwm0zpxtpwf4','instance.stop','ins_kz3h1r80pt62yxrv','{"name":"batch"}');
CREATE TABLE bill_cursor (
    name TEXT PRIMARY KEY,
    intervals BIGINT NOT NULL,    -- up to this number they are charged
    charges BIGINT NOT NULL,      -- the number of the newest
    entries BIGINT NOT NULL,
    booked_until_us BIGINT NOT NULL, -- days are closed up to here
    latest_us BIGINT NOT NULL     -- the end of the latest time charged: no price or purchase begins before
);
INSERT INTO "bill_cursor" VALUES('bill',4,103,91,1788480000000000,1788480000000000);
CREATE TABLE bill_profile (
    project_id TEXT PRIMARY KEY,
    currency TEXT NOT NULL,
    pays TEXT NOT NULL,           -- invoice or prepaid
    tax_name TEXT NOT NULL,
    tax_bp BIGINT NOT NULL,
    customer TEXT NOT NULL,       -- lines of an address, for invoices
    CHECK (tax_bp >= 0)
);
INSERT INTO "bill_profile" VALUES('prj_kz3dkwm0h5x428ch','USD','invoice','',0,'Acme
1 Main Street');
CREATE TABLE budget (
    project_id TEXT PRIMARY KEY,
    currency TEXT NOT NULL,
    micros BIGINT NOT NULL,       -- a calendar month, UTC
    levels TEXT NOT NULL,         -- JSON: percents
    hard_stop BIGINT NOT NULL,
    notice_seconds BIGINT NOT NULL, -- how long before the hard stop it is announced
    CHECK (micros >= 0)
);
INSERT INTO "budget" VALUES('prj_kz3dkwm0h5x428ch','USD',10000000000,'[50,80,100]',0,3600);
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
INSERT INTO "charge" VALUES(1,'ins_kz3h1r80dbdtrp96',1,3,0,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1785754800000000,1785801600000000,'USD',298465,0,130000,26000,142465,0,0,0,0,0,298465,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1785805200000000);
INSERT INTO "charge" VALUES(2,'ins_kz3h1r806tdq3ert',1,3,0,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1785754800000000,1785801600000000,'USD',454465,0,260000,52000,142465,0,0,0,0,0,454465,'',0,2,2147483648,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm0a49byb9e','home','past','mem_kz3dkwm0zpxtpwf4','{}',1785805200000000);
INSERT INTO "charge" VALUES(3,'ins_kz3h1r808v4wsr9h',1,3,0,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1785754800000000,1785801600000000,'USD',44899863,39780000,2080000,2470000,569863,0,0,0,0,0,44899863,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1785805200000000);
INSERT INTO "charge" VALUES(4,'ins_kz3h1r80pt62yxrv',1,3,0,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1785754800000000,1785801600000000,'USD',18899863,13780000,2080000,2470000,569863,0,0,0,0,0,44899863,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1785805200000000);
INSERT INTO "charge" VALUES(5,'ins_kz3h1r80pt62yxrv',1,3,1,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1785801600000000,1785859633000000,'USD',23436232,17087494,2579244,3062852,706642,0,0,0,0,0,55676788,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1785863233000000);
INSERT INTO "charge" VALUES(6,'ins_kz3h1r806tdq3ert',1,3,1,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1785801600000000,1785859633000000,'USD',563547,0,322405,64481,176661,0,0,0,0,0,563547,'',0,2,2147483648,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm0a49byb9e','home','past','mem_kz3dkwm0zpxtpwf4','{}',1785863233000000);
INSERT INTO "charge" VALUES(7,'ins_kz3h1r80dbdtrp96',1,3,1,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1785801600000000,1785888000000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1785892033000000);
INSERT INTO "charge" VALUES(8,'ins_kz3h1r808v4wsr9h',1,3,1,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1785801600000000,1785888000000000,'USD',82892054,73440000,3840000,4560000,1052054,0,0,0,0,0,82892054,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1785892033000000);
INSERT INTO "charge" VALUES(9,'ins_kz3h1r80pt62yxrv',2,5,0,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1785863233000000,1785888000000000,'USD',301576,0,0,0,301576,0,0,0,0,0,301576,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1785892033000000);
INSERT INTO "charge" VALUES(10,'ins_kz3h1r80dbdtrp96',1,3,2,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1785888000000000,1785974400000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1785978433000000);
INSERT INTO "charge" VALUES(11,'ins_kz3h1r808v4wsr9h',1,3,2,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1785888000000000,1785974400000000,'USD',82892055,73440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1785978433000000);
INSERT INTO "charge" VALUES(12,'ins_kz3h1r80pt62yxrv',2,5,1,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1785888000000000,1785974400000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1785978433000000);
INSERT INTO "charge" VALUES(13,'ins_kz3h1r80dbdtrp96',1,3,3,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1785974400000000,1786060800000000,'USD',551013,0,240000,48000,263013,0,0,0,0,0,551013,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1786064833000000);
INSERT INTO "charge" VALUES(14,'ins_kz3h1r808v4wsr9h',1,3,3,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1785974400000000,1786060800000000,'USD',82892055,73440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1786064833000000);
INSERT INTO "charge" VALUES(15,'ins_kz3h1r80pt62yxrv',2,5,2,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1785974400000000,1786060800000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1786064833000000);
INSERT INTO "charge" VALUES(16,'ins_kz3h1r80dbdtrp96',1,3,4,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1786060800000000,1786147200000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1786151233000000);
INSERT INTO "charge" VALUES(17,'ins_kz3h1r808v4wsr9h',1,3,4,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786060800000000,1786147200000000,'USD',82892055,73440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1786151233000000);
INSERT INTO "charge" VALUES(18,'ins_kz3h1r80pt62yxrv',2,5,3,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786060800000000,1786147200000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1786151233000000);
INSERT INTO "charge" VALUES(19,'ins_kz3h1r80dbdtrp96',1,3,5,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1786147200000000,1786233600000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1786237633000000);
INSERT INTO "charge" VALUES(20,'ins_kz3h1r808v4wsr9h',1,3,5,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786147200000000,1786233600000000,'USD',82892054,73440000,3840000,4560000,1052054,0,0,0,0,0,82892054,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1786237633000000);
INSERT INTO "charge" VALUES(21,'ins_kz3h1r80pt62yxrv',2,5,4,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786147200000000,1786233600000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1786237633000000);
INSERT INTO "charge" VALUES(22,'ins_kz3h1r80dbdtrp96',1,3,6,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1786233600000000,1786320000000000,'USD',551013,0,240000,48000,263013,0,0,0,0,0,551013,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1786324033000000);
INSERT INTO "charge" VALUES(23,'ins_kz3h1r808v4wsr9h',1,3,6,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786233600000000,1786320000000000,'USD',82892055,73440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1786324033000000);
INSERT INTO "charge" VALUES(24,'ins_kz3h1r80pt62yxrv',2,5,5,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786233600000000,1786320000000000,'USD',1052054,0,0,0,1052054,0,0,0,0,0,1052054,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1786324033000000);
INSERT INTO "charge" VALUES(25,'ins_kz3h1r80dbdtrp96',1,3,7,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1786320000000000,1786406400000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1786410433000000);
INSERT INTO "charge" VALUES(26,'ins_kz3h1r808v4wsr9h',1,3,7,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786320000000000,1786406400000000,'USD',82892055,73440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1786410433000000);
INSERT INTO "charge" VALUES(27,'ins_kz3h1r80pt62yxrv',2,5,6,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786320000000000,1786406400000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1786410433000000);
INSERT INTO "charge" VALUES(28,'ins_kz3h1r80dbdtrp96',1,3,8,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1786406400000000,1786492800000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1786496833000000);
INSERT INTO "charge" VALUES(29,'ins_kz3h1r808v4wsr9h',1,3,8,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786406400000000,1786492800000000,'USD',82892055,73440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1786496833000000);
INSERT INTO "charge" VALUES(30,'ins_kz3h1r80pt62yxrv',2,5,7,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786406400000000,1786492800000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1786496833000000);
INSERT INTO "charge" VALUES(31,'ins_kz3h1r80dbdtrp96',1,3,9,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1786492800000000,1786579200000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1786583233000000);
INSERT INTO "charge" VALUES(32,'ins_kz3h1r808v4wsr9h',1,3,9,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786492800000000,1786579200000000,'USD',82892055,73440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1786583233000000);
INSERT INTO "charge" VALUES(33,'ins_kz3h1r80pt62yxrv',2,5,8,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786492800000000,1786579200000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1786583233000000);
INSERT INTO "charge" VALUES(34,'ins_kz3h1r80dbdtrp96',1,3,10,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1786579200000000,1786665600000000,'USD',551013,0,240000,48000,263013,0,0,0,0,0,551013,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1786669633000000);
INSERT INTO "charge" VALUES(35,'ins_kz3h1r808v4wsr9h',1,3,10,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786579200000000,1786665600000000,'USD',82892054,73440000,3840000,4560000,1052054,0,0,0,0,0,82892054,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1786669633000000);
INSERT INTO "charge" VALUES(36,'ins_kz3h1r80pt62yxrv',2,5,9,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786579200000000,1786665600000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1786669633000000);
INSERT INTO "charge" VALUES(37,'ins_kz3h1r80dbdtrp96',1,3,11,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1786665600000000,1786752000000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1786756033000000);
INSERT INTO "charge" VALUES(38,'ins_kz3h1r808v4wsr9h',1,3,11,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786665600000000,1786752000000000,'USD',82892055,73440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1786756033000000);
INSERT INTO "charge" VALUES(39,'ins_kz3h1r80pt62yxrv',2,5,10,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786665600000000,1786752000000000,'USD',1052054,0,0,0,1052054,0,0,0,0,0,1052054,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1786756033000000);
INSERT INTO "charge" VALUES(40,'ins_kz3h1r80dbdtrp96',1,3,12,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1786752000000000,1786838400000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1786842433000000);
INSERT INTO "charge" VALUES(41,'ins_kz3h1r808v4wsr9h',1,3,12,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786752000000000,1786838400000000,'USD',82892055,73440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1786842433000000);
INSERT INTO "charge" VALUES(42,'ins_kz3h1r80pt62yxrv',2,5,11,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786752000000000,1786838400000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1786842433000000);
INSERT INTO "charge" VALUES(43,'ins_kz3h1r80dbdtrp96',1,3,13,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1786838400000000,1786924800000000,'USD',551013,0,240000,48000,263013,0,0,0,0,0,551013,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1786928833000000);
INSERT INTO "charge" VALUES(44,'ins_kz3h1r808v4wsr9h',1,3,13,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786838400000000,1786924800000000,'USD',82892055,73440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1786928833000000);
INSERT INTO "charge" VALUES(45,'ins_kz3h1r80pt62yxrv',2,5,12,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786838400000000,1786924800000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1786928833000000);
INSERT INTO "charge" VALUES(46,'ins_kz3h1r80dbdtrp96',1,3,14,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1786924800000000,1787011200000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787015233000000);
INSERT INTO "charge" VALUES(47,'ins_kz3h1r808v4wsr9h',1,3,14,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786924800000000,1787011200000000,'USD',82892055,73440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787015233000000);
INSERT INTO "charge" VALUES(48,'ins_kz3h1r80pt62yxrv',2,5,13,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1786924800000000,1787011200000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787015233000000);
INSERT INTO "charge" VALUES(49,'pur_m0at0xv8sb51ekr8',0,0,0,'fee',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787069233000000,1789747633000000,'USD',2520500000,0,0,0,0,0,0,0,0,2520500000,2520500000,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'monthly','pur_m0at0xv8sb51ekr8',0,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787069233000000);
INSERT INTO "charge" VALUES(50,'ins_kz3h1r80pt62yxrv',2,5,14,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787011200000000,1787072833000000,'USD',750478,0,0,0,750478,0,0,0,0,0,750478,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787072833000000);
INSERT INTO "charge" VALUES(51,'ins_kz3h1r80dbdtrp96',1,3,15,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787011200000000,1787097600000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787101633000000);
INSERT INTO "charge" VALUES(52,'ins_kz3h1r808v4wsr9h',1,3,15,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787011200000000,1787069233000000,'USD',55676788,49328050,2579244,3062852,706642,0,0,0,0,0,55676788,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787101633000000);
INSERT INTO "charge" VALUES(53,'ins_kz3h1r808v4wsr9h',1,3,16,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787069233000000,1787097600000000,'USD',0,0,0,0,0,0,0,0,0,0,27215266,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787101633000000);
INSERT INTO "charge" VALUES(54,'ins_kz3h1r80pt62yxrv',3,8,0,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787072833000000,1787097600000000,'USD',10001983,7292505,1100755,1307147,301576,0,0,0,0,0,23761428,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787101633000000);
INSERT INTO "charge" VALUES(55,'ins_kz3h1r80dbdtrp96',1,3,16,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787097600000000,1787184000000000,'USD',551013,0,240000,48000,263013,0,0,0,0,0,551013,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787188033000000);
INSERT INTO "charge" VALUES(56,'ins_kz3h1r808v4wsr9h',1,3,17,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787097600000000,1787184000000000,'USD',0,0,0,0,0,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787188033000000);
INSERT INTO "charge" VALUES(57,'ins_kz3h1r80pt62yxrv',3,8,1,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787097600000000,1787184000000000,'USD',34892055,25440000,3840000,4560000,1052055,0,0,0,0,0,82892055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787188033000000);
INSERT INTO "charge" VALUES(58,'ins_kz3h1r80dbdtrp96',1,3,17,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787184000000000,1787270400000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787274433000000);
INSERT INTO "charge" VALUES(59,'ins_kz3h1r808v4wsr9h',1,3,18,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787184000000000,1787270400000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787274433000000);
INSERT INTO "charge" VALUES(60,'ins_kz3h1r80pt62yxrv',3,8,2,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787184000000000,1787270400000000,'USD',33692055,24240000,3840000,4560000,1052055,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787274433000000);
INSERT INTO "charge" VALUES(61,'ins_kz3h1r80pt62yxrv',3,8,3,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787270400000000,1787328434000000,'USD',22630609,16281761,2579289,3062905,706654,0,0,0,0,0,50680375,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787332034000000);
INSERT INTO "charge" VALUES(62,'ins_kz3h1r80dbdtrp96',1,3,18,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787270400000000,1787356800000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787360834000000);
INSERT INTO "charge" VALUES(63,'ins_kz3h1r808v4wsr9h',1,3,19,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787270400000000,1787356800000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787360834000000);
INSERT INTO "charge" VALUES(64,'ins_kz3h1r80pt62yxrv',4,10,0,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787332034000000,1787356800000000,'USD',301564,0,0,0,301564,0,0,0,0,0,301564,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787360834000000);
INSERT INTO "charge" VALUES(65,'ins_kz3h1r80dbdtrp96',1,3,19,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787356800000000,1787443200000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787447234000000);
INSERT INTO "charge" VALUES(66,'ins_kz3h1r808v4wsr9h',1,3,20,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787356800000000,1787443200000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787447234000000);
INSERT INTO "charge" VALUES(67,'ins_kz3h1r80pt62yxrv',4,10,1,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787356800000000,1787443200000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787447234000000);
INSERT INTO "charge" VALUES(68,'ins_kz3h1r80dbdtrp96',1,3,20,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787443200000000,1787529600000000,'USD',551013,0,240000,48000,263013,0,0,0,0,0,551013,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787533634000000);
INSERT INTO "charge" VALUES(69,'ins_kz3h1r808v4wsr9h',1,3,21,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787443200000000,1787529600000000,'USD',0,0,0,0,0,0,0,0,0,0,75452054,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787533634000000);
INSERT INTO "charge" VALUES(70,'ins_kz3h1r80pt62yxrv',4,10,2,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787443200000000,1787529600000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787533634000000);
INSERT INTO "charge" VALUES(71,'ins_kz3h1r80dbdtrp96',1,3,21,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787529600000000,1787616000000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787620034000000);
INSERT INTO "charge" VALUES(72,'ins_kz3h1r808v4wsr9h',1,3,22,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787529600000000,1787616000000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787620034000000);
INSERT INTO "charge" VALUES(73,'ins_kz3h1r80pt62yxrv',4,10,3,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787529600000000,1787616000000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787620034000000);
INSERT INTO "charge" VALUES(74,'ins_kz3h1r80dbdtrp96',1,3,22,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787616000000000,1787702400000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787706434000000);
INSERT INTO "charge" VALUES(75,'ins_kz3h1r808v4wsr9h',1,3,23,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787616000000000,1787702400000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787706434000000);
INSERT INTO "charge" VALUES(76,'ins_kz3h1r80pt62yxrv',4,10,4,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787616000000000,1787702400000000,'USD',1052054,0,0,0,1052054,0,0,0,0,0,1052054,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787706434000000);
INSERT INTO "charge" VALUES(77,'ins_kz3h1r80dbdtrp96',1,3,23,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787702400000000,1787788800000000,'USD',551013,0,240000,48000,263013,0,0,0,0,0,551013,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787792834000000);
INSERT INTO "charge" VALUES(78,'ins_kz3h1r808v4wsr9h',1,3,24,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787702400000000,1787788800000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787792834000000);
INSERT INTO "charge" VALUES(79,'ins_kz3h1r80pt62yxrv',4,10,5,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787702400000000,1787788800000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787792834000000);
INSERT INTO "charge" VALUES(80,'ins_kz3h1r80dbdtrp96',1,3,24,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787788800000000,1787875200000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787879234000000);
INSERT INTO "charge" VALUES(81,'ins_kz3h1r808v4wsr9h',1,3,25,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787788800000000,1787875200000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787879234000000);
INSERT INTO "charge" VALUES(82,'ins_kz3h1r80pt62yxrv',4,10,6,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787788800000000,1787875200000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787879234000000);
INSERT INTO "charge" VALUES(83,'ins_kz3h1r80dbdtrp96',1,3,25,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787875200000000,1787961600000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1787965634000000);
INSERT INTO "charge" VALUES(84,'ins_kz3h1r808v4wsr9h',1,3,26,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787875200000000,1787961600000000,'USD',0,0,0,0,0,0,0,0,0,0,75452054,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1787965634000000);
INSERT INTO "charge" VALUES(85,'ins_kz3h1r80pt62yxrv',4,10,7,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787875200000000,1787961600000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1787965634000000);
INSERT INTO "charge" VALUES(86,'ins_kz3h1r80dbdtrp96',1,3,26,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1787961600000000,1788048000000000,'USD',551013,0,240000,48000,263013,0,0,0,0,0,551013,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1788052034000000);
INSERT INTO "charge" VALUES(87,'ins_kz3h1r808v4wsr9h',1,3,27,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787961600000000,1788048000000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1788052034000000);
INSERT INTO "charge" VALUES(88,'ins_kz3h1r80pt62yxrv',4,10,8,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1787961600000000,1788048000000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1788052034000000);
INSERT INTO "charge" VALUES(89,'ins_kz3h1r80dbdtrp96',1,3,27,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1788048000000000,1788134400000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1788138434000000);
INSERT INTO "charge" VALUES(90,'ins_kz3h1r808v4wsr9h',1,3,28,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1788048000000000,1788134400000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1788138434000000);
INSERT INTO "charge" VALUES(91,'ins_kz3h1r80pt62yxrv',4,10,9,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1788048000000000,1788134400000000,'USD',1052054,0,0,0,1052054,0,0,0,0,0,1052054,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1788138434000000);
INSERT INTO "charge" VALUES(92,'ins_kz3h1r80dbdtrp96',1,3,28,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-08',1788134400000000,1788220800000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1788224834000000);
INSERT INTO "charge" VALUES(93,'ins_kz3h1r808v4wsr9h',1,3,29,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1788134400000000,1788220800000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1788224834000000);
INSERT INTO "charge" VALUES(94,'ins_kz3h1r80pt62yxrv',4,10,10,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-08',1788134400000000,1788220800000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1788224834000000);
INSERT INTO "charge" VALUES(95,'ins_kz3h1r80dbdtrp96',1,3,29,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-09',1788220800000000,1788307200000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1788311234000000);
INSERT INTO "charge" VALUES(96,'ins_kz3h1r808v4wsr9h',1,3,30,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-09',1788220800000000,1788307200000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1788311234000000);
INSERT INTO "charge" VALUES(97,'ins_kz3h1r80pt62yxrv',4,10,11,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-09',1788220800000000,1788307200000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1788311234000000);
INSERT INTO "charge" VALUES(98,'ins_kz3h1r80dbdtrp96',1,3,30,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-09',1788307200000000,1788393600000000,'USD',551013,0,240000,48000,263013,0,0,0,0,0,551013,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1788397634000000);
INSERT INTO "charge" VALUES(99,'ins_kz3h1r808v4wsr9h',1,3,31,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-09',1788307200000000,1788393600000000,'USD',0,0,0,0,0,0,0,0,0,0,75452054,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1788397634000000);
INSERT INTO "charge" VALUES(100,'ins_kz3h1r80pt62yxrv',4,10,12,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-09',1788307200000000,1788393600000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1788397634000000);
INSERT INTO "charge" VALUES(101,'ins_kz3h1r80dbdtrp96',1,3,31,'usage',-1,'prj_kz3dkwm0e4pjmq3m','2026-09',1788393600000000,1788480000000000,'USD',551014,0,240000,48000,263014,0,0,0,0,0,551014,'',0,1,1073741824,8589934592,0,0,0,'on-demand','',1,0,'hst_kz3dkwm08dkdh8sq','home','theirs','mem_kz3dkwm0pyjz1qa4','{}',1788484034000000);
INSERT INTO "charge" VALUES(102,'ins_kz3h1r808v4wsr9h',1,3,32,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-09',1788393600000000,1788480000000000,'USD',0,0,0,0,0,0,0,0,0,0,75452055,'V100-SXM2',1,16,102005473280,34359738368,0,0,0,'on-demand','pur_m0at0xv8sb51ekr8',1,0,'hst_kz3dkwm08dkdh8sq','home','web','mem_kz3dkwm0zpxtpwf4','{"team":"red"}',1788484034000000);
INSERT INTO "charge" VALUES(103,'ins_kz3h1r80pt62yxrv',4,10,13,'usage',-1,'prj_kz3dkwm0h5x428ch','2026-09',1788393600000000,1788480000000000,'USD',1052055,0,0,0,1052055,0,0,0,0,0,1052055,'',0,0,0,34359738368,0,0,0,'spot','',1,0,'hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}',1788484034000000);
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
INSERT INTO "charge_sum" VALUES('prj_kz3dkwm0e4pjmq3m','2026-08','USD','','mem_kz3dkwm0pyjz1qa4','{}','usage',29,15726849,15726849);
INSERT INTO "charge_sum" VALUES('prj_kz3dkwm0h5x428ch','2026-08','USD','','mem_kz3dkwm0zpxtpwf4','{}','usage',28,26568891,26568891);
INSERT INTO "charge_sum" VALUES('prj_kz3dkwm0h5x428ch','2026-08','USD','V100-SXM2','mem_kz3dkwm0zpxtpwf4','{"team":"red"}','usage',30,1261065418,2276597397);
INSERT INTO "charge_sum" VALUES('prj_kz3dkwm0h5x428ch','2026-08','USD','V100-SXM2','mem_kz3dkwm0zpxtpwf4','{}','usage',6,143552797,333362564);
INSERT INTO "charge_sum" VALUES('prj_kz3dkwm0h5x428ch','2026-08','USD','V100-SXM2','mem_kz3dkwm0zpxtpwf4','{"team":"red"}','fee',1,2520500000,2520500000);
INSERT INTO "charge_sum" VALUES('prj_kz3dkwm0e4pjmq3m','2026-09','USD','','mem_kz3dkwm0pyjz1qa4','{}','usage',3,1653041,1653041);
INSERT INTO "charge_sum" VALUES('prj_kz3dkwm0h5x428ch','2026-09','USD','','mem_kz3dkwm0zpxtpwf4','{}','usage',3,3156165,3156165);
INSERT INTO "charge_sum" VALUES('prj_kz3dkwm0h5x428ch','2026-09','USD','V100-SXM2','mem_kz3dkwm0zpxtpwf4','{"team":"red"}','usage',3,0,226356164);
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
INSERT INTO "credit_grant" VALUES('crd_kz3dkwm0yq835hq7','prj_kz3dkwm0h5x428ch','sign-up','USD',5000000,1785715200000000,4611686018427387904,5000000,0,1);
CREATE TABLE event (
    id TEXT PRIMARY KEY,
    at_us BIGINT NOT NULL,     -- microseconds since 1970, UTC
    kind TEXT NOT NULL,        -- noun.verb_in_the_past
    subject TEXT NOT NULL,
    details TEXT NOT NULL      -- JSON object
, project_id TEXT NOT NULL DEFAULT '');
INSERT INTO "event" VALUES('evt_kz3h1r8004a07kqv',1785751200000000,'instance.moved','ins_kz3h1r808v4wsr9h','{"sequence":1,"generation":0,"name":"web","from":"","to":"queued","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"on-demand","labels":"{\"team\":\"red\"}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz3h1r80a9dc0xrf',1785751200000000,'instance.moved','ins_kz3h1r80pt62yxrv','{"sequence":1,"generation":0,"name":"batch","from":"","to":"queued","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"spot","labels":"{}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz3h1r80c9x5pw1b',1785751200000000,'instance.moved','ins_kz3h1r806tdq3ert','{"sequence":1,"generation":0,"name":"past","from":"","to":"queued","gpu":"","gpus":0,"vcpus":2,"ram_bytes":2147483648,"disk_bytes":8589934592,"snapshots_bytes":0,"host":"hst_kz3dkwm0a49byb9e","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"on-demand","labels":"{}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz3h1r80s4ftb2t7',1785751200000000,'instance.moved','ins_kz3h1r80dbdtrp96','{"sequence":1,"generation":0,"name":"theirs","from":"","to":"queued","gpu":"","gpus":0,"vcpus":1,"ram_bytes":1073741824,"disk_bytes":8589934592,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0pyjz1qa4","mode":"on-demand","labels":"{}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0e4pjmq3m');
INSERT INTO "event" VALUES('evt_kz3mfkw0crqpgppg',1785754800000000,'instance.moved','ins_kz3h1r806tdq3ert','{"sequence":2,"generation":1,"name":"past","from":"queued","to":"starting","gpu":"","gpus":0,"vcpus":2,"ram_bytes":2147483648,"disk_bytes":8589934592,"snapshots_bytes":0,"host":"hst_kz3dkwm0a49byb9e","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"on-demand","labels":"{}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz3mfkw080w83nwf',1785754800000000,'instance.moved','ins_kz3h1r808v4wsr9h','{"sequence":2,"generation":1,"name":"web","from":"queued","to":"starting","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"on-demand","labels":"{\"team\":\"red\"}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz3mfkw0trjp0ryb',1785754800000000,'instance.moved','ins_kz3h1r80dbdtrp96','{"sequence":2,"generation":1,"name":"theirs","from":"queued","to":"starting","gpu":"","gpus":0,"vcpus":1,"ram_bytes":1073741824,"disk_bytes":8589934592,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0pyjz1qa4","mode":"on-demand","labels":"{}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0e4pjmq3m');
INSERT INTO "event" VALUES('evt_kz3mfkw07qhgba5m',1785754800000000,'instance.moved','ins_kz3h1r80pt62yxrv','{"sequence":2,"generation":1,"name":"batch","from":"queued","to":"starting","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"spot","labels":"{}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz3mfkw0f0pq5pja',1785754800000000,'instance.moved','ins_kz3h1r806tdq3ert','{"sequence":3,"generation":1,"name":"past","from":"starting","to":"running","gpu":"","gpus":0,"vcpus":2,"ram_bytes":2147483648,"disk_bytes":8589934592,"snapshots_bytes":0,"host":"hst_kz3dkwm0a49byb9e","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"on-demand","labels":"{}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz3mfkw04zkzndke',1785754800000000,'instance.moved','ins_kz3h1r808v4wsr9h','{"sequence":3,"generation":1,"name":"web","from":"starting","to":"running","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"on-demand","labels":"{\"team\":\"red\"}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz3mfkw0ycb6dcrc',1785754800000000,'instance.moved','ins_kz3h1r80dbdtrp96','{"sequence":3,"generation":1,"name":"theirs","from":"starting","to":"running","gpu":"","gpus":0,"vcpus":1,"ram_bytes":1073741824,"disk_bytes":8589934592,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0pyjz1qa4","mode":"on-demand","labels":"{}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0e4pjmq3m');
INSERT INTO "event" VALUES('evt_kz3mfkw0v6gfrn35',1785754800000000,'instance.moved','ins_kz3h1r80pt62yxrv','{"sequence":3,"generation":1,"name":"batch","from":"starting","to":"running","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"spot","labels":"{}","wanted":"running","asked_at_us":1785751200000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz6vwqf8ty7nm7gw',1785863233000000,'instance.moved','ins_kz3h1r806tdq3ert','{"sequence":4,"generation":2,"name":"past","from":"running","to":"deleting","gpu":"","gpus":0,"vcpus":2,"ram_bytes":2147483648,"disk_bytes":8589934592,"snapshots_bytes":0,"host":"hst_kz3dkwm0a49byb9e","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"on-demand","labels":"{}","wanted":"gone","asked_at_us":1785859633000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz6vwqf806gd3t53',1785863233000000,'instance.moved','ins_kz3h1r80pt62yxrv','{"sequence":4,"generation":2,"name":"batch","from":"running","to":"stopping","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"spot","labels":"{}","wanted":"stopped","asked_at_us":1785859633000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz6vwqf8jjw017np',1785863233000000,'instance.moved','ins_kz3h1r806tdq3ert','{"sequence":5,"generation":2,"name":"past","from":"deleting","to":"gone","gpu":"","gpus":0,"vcpus":0,"ram_bytes":0,"disk_bytes":0,"snapshots_bytes":0,"host":"hst_kz3dkwm0a49byb9e","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"on-demand","labels":"{}","wanted":"gone","asked_at_us":1785859633000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_kz6vwqf85zm5wyrx',1785863233000000,'instance.moved','ins_kz3h1r80pt62yxrv','{"sequence":5,"generation":2,"name":"batch","from":"stopping","to":"stopped","gpu":"V100-SXM2","gpus":0,"vcpus":0,"ram_bytes":0,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"spot","labels":"{}","wanted":"stopped","asked_at_us":1785859633000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_m0at0xv8ey5jk7ym',1787069233000000,'instance.held','ins_kz3h1r80pt62yxrv','{"sequence":6,"generation":2,"name":"batch","from":"stopped","to":"stopped","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"spot","labels":"{}","wanted":"running","asked_at_us":1787069233000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_m0at0xv8qwe5yyrk',1787069233000000,'purchase.bought','pur_m0at0xv8sb51ekr8','{"term":0,"instance":"ins_kz3h1r808v4wsr9h","mode":"monthly","years":0,"upfront":0,"from_us":1787069233000000,"until_us":1789747633000000,"gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"currency":"USD","fee_micros":2520500000,"host":"hst_kz3dkwm08dkdh8sq","region":"home","version":1,"name":"web","member":"mem_kz3dkwm0zpxtpwf4","labels":"{\"team\":\"red\"}"}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_m0axesf85z0prm3v',1787072833000000,'instance.moved','ins_kz3h1r80pt62yxrv','{"sequence":7,"generation":3,"name":"batch","from":"stopped","to":"starting","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"spot","labels":"{}","wanted":"running","asked_at_us":1787069233000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_m0axesf8m1xyb544',1787072833000000,'instance.moved','ins_kz3h1r80pt62yxrv','{"sequence":8,"generation":3,"name":"batch","from":"starting","to":"running","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"spot","labels":"{}","wanted":"running","asked_at_us":1787069233000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_m0jmmzegk35fxy5q',1787332034000000,'instance.moved','ins_kz3h1r80pt62yxrv','{"sequence":9,"generation":4,"name":"batch","from":"running","to":"stopping","gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"spot","labels":"{}","wanted":"stopped","asked_at_us":1787328434000000}','prj_kz3dkwm0h5x428ch');
INSERT INTO "event" VALUES('evt_m0jmmzegb6qt4c40',1787332034000000,'instance.moved','ins_kz3h1r80pt62yxrv','{"sequence":10,"generation":4,"name":"batch","from":"stopping","to":"stopped","gpu":"V100-SXM2","gpus":0,"vcpus":0,"ram_bytes":0,"disk_bytes":34359738368,"snapshots_bytes":0,"host":"hst_kz3dkwm08dkdh8sq","region":"home","member":"mem_kz3dkwm0zpxtpwf4","mode":"spot","labels":"{}","wanted":"stopped","asked_at_us":1787328434000000}','prj_kz3dkwm0h5x428ch');
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
INSERT INTO "host" VALUES('hst_kz3dkwm0a49byb9e','simulated','simulated-0001','ready','198.18.0.1',32,206158430208,2199023255552,1,1785747600000000,1788538034000000,'home');
INSERT INTO "host" VALUES('hst_kz3dkwm08dkdh8sq','simulated','simulated-0002','ready','198.18.0.2',32,206158430208,2199023255552,1,1785747600000000,1788538034000000,'home');
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
INSERT INTO "host_gpu" VALUES('hst_kz3dkwm0a49byb9e','0000:01:00.0','physical','V100-SXM2','Simulated Tesla V100 SXM2 16 GB',16944988160,1,NULL,NULL);
INSERT INTO "host_gpu" VALUES('hst_kz3dkwm0a49byb9e','0000:02:00.0','physical','V100-SXM2','Simulated Tesla V100 SXM2 16 GB',16944988160,1,NULL,NULL);
INSERT INTO "host_gpu" VALUES('hst_kz3dkwm08dkdh8sq','0000:01:00.0','physical','V100-SXM2','Simulated Tesla V100 SXM2 16 GB',16944988160,1,'ins_kz3h1r808v4wsr9h',NULL);
INSERT INTO "host_gpu" VALUES('hst_kz3dkwm08dkdh8sq','0000:02:00.0','physical','V100-SXM2','Simulated Tesla V100 SXM2 16 GB',16944988160,1,NULL,NULL);
CREATE TABLE host_port (
    host_id TEXT NOT NULL REFERENCES host (id),
    port BIGINT NOT NULL,
    guest_port BIGINT NOT NULL,
    instance_id TEXT NOT NULL,
    PRIMARY KEY (host_id, port)
);
INSERT INTO "host_port" VALUES('hst_kz3dkwm08dkdh8sq',20000,22,'ins_kz3h1r808v4wsr9h');
INSERT INTO "host_port" VALUES('hst_kz3dkwm08dkdh8sq',20001,8888,'ins_kz3h1r808v4wsr9h');
INSERT INTO "host_port" VALUES('hst_kz3dkwm08dkdh8sq',20002,22,'ins_kz3h1r80pt62yxrv');
INSERT INTO "host_port" VALUES('hst_kz3dkwm08dkdh8sq',20003,22,'ins_kz3h1r80dbdtrp96');
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
INSERT INTO "image" VALUES('img_kz3dkwm03998fb81','','base','base','ready','',67108864,'',1785747600000000);
INSERT INTO "image" VALUES('img_kz6revv8ppdk59bx','prj_kz3dkwm0h5x428ch','tools','','ready','',0,'ins_kz3h1r808v4wsr9h',1785859633000000);
CREATE TABLE installation (
    id TEXT PRIMARY KEY,        -- marks all that this installation makes on an engine; one row
    made_at_us BIGINT NOT NULL
);
INSERT INTO "installation" VALUES('tera_kz3dkwm06d6caat7',1785747600000000);
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
INSERT INTO "instance" VALUES('ins_kz3h1r808v4wsr9h','prj_kz3dkwm0h5x428ch','web','running',1785751200000000,'running','V100-SXM2',1,16,102005473280,34359738368,16,102005473280,34359738368,'base','jupyter','{"authorized_keys":[],"command":[],"user_data":"","labels":{"team":"red"},"environment":{},"jupyter_token":"e3ae3f052c3470f5ffaaa644f5284dca1e0aea0f987554e9","image_id":"img_kz3dkwm03998fb81","mode":"on-demand"}','hst_kz3dkwm08dkdh8sq','10.128.16.16','ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFDwosnG34nX41lrmO7p5hH9tM2IAuav0ctVHcFAqnez','',NULL,1785751200000000,'mem_kz3dkwm0zpxtpwf4',1785754800000000,NULL,'','','',0,0,0,3,3,1785863233000000,'',15,1,0);
INSERT INTO "instance" VALUES('ins_kz3h1r80pt62yxrv','prj_kz3dkwm0h5x428ch','batch','stopped',1787328434000000,'stopped','V100-SXM2',1,16,102005473280,34359738368,0,0,34359738368,'base','ssh','{"authorized_keys":[],"command":[],"user_data":"","labels":{},"environment":{},"jupyter_token":"","image_id":"img_kz3dkwm03998fb81","mode":"spot"}','hst_kz3dkwm08dkdh8sq','10.128.16.17','ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG8I3077Ksi/GYAbdUEldI3gO7rt34Yf7+FrJOvvPlFu','',NULL,1785751200000000,'mem_kz3dkwm0zpxtpwf4',NULL,NULL,'','','',0,0,0,4,10,1787332034000000,'',28,1,0);
INSERT INTO "instance" VALUES('ins_kz3h1r806tdq3ert','prj_kz3dkwm0h5x428ch','past','gone',1785859633000000,'gone','',0,2,2147483648,8589934592,0,0,0,'base','ssh','{"authorized_keys":[],"command":[],"user_data":"","labels":{},"environment":{},"jupyter_token":"","image_id":"img_kz3dkwm03998fb81","mode":"on-demand"}',NULL,NULL,'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFWSq3LxhB1EhRBNSkLw5xbzY5ePwiKKrMyIlKh6KaC/','',NULL,1785751200000000,'mem_kz3dkwm0zpxtpwf4',NULL,1785863233000000,'','','',0,0,0,2,5,1785863233000000,'',14,1,0);
INSERT INTO "instance" VALUES('ins_kz3h1r80dbdtrp96','prj_kz3dkwm0e4pjmq3m','theirs','running',1785751200000000,'running','',0,1,1073741824,8589934592,1,1073741824,8589934592,'base','ssh','{"authorized_keys":[],"command":[],"user_data":"","labels":{},"environment":{},"jupyter_token":"","image_id":"img_kz3dkwm03998fb81","mode":"on-demand"}','hst_kz3dkwm08dkdh8sq','10.128.32.16','ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDVfi59p3LoaZicCpHlI43468pZJOuI8eVrO4avXp3Cn','',NULL,1785751200000000,'mem_kz3dkwm0pyjz1qa4',1785754800000000,NULL,'','','',0,0,0,1,3,1785754800000000,'',7,1,0);
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
INSERT INTO "invoice" VALUES(1,'prj_kz3dkwm0e4pjmq3m','2026-08','USD',0,94,15726849,0,3145370,0,18872219,1788224834000000,'{"project":"default","month":"2026-08","customer":"","tax_name":"VAT","tax_bp":2000,"charges_until":94,"entries_until":83,"lines":[{"what":"theirs","details":"1 vCPU, 1 GB RAM, 8 GB disk","quantity":"685.000 h","micros":15726849,"month":""}]}');
INSERT INTO "invoice" VALUES(2,'prj_kz3dkwm0h5x428ch','2026-08','USD',0,94,3951687106,5000000,789337421,0,4736024527,1788224834000000,'{"project":"default","month":"2026-08","customer":"Acme\n1 Main Street","tax_name":"VAT","tax_bp":2000,"charges_until":94,"entries_until":84,"lines":[{"what":"web: monthly","details":"1 × V100-SXM2, 16 vCPU, 95 GB RAM, 32 GB disk","quantity":"1 term","micros":2520500000,"month":""},{"what":"web","details":"1 × V100-SXM2, 16 vCPU, 95 GB RAM, 32 GB disk","quantity":"365.120 h","micros":1261065418,"month":""},{"what":"batch","details":"1 × V100-SXM2, 16 vCPU, 95 GB RAM, 32 GB disk, spot","quantity":"100.121 h","micros":143552797,"month":""},{"what":"batch","details":"stopped: 32 GB disk, spot","quantity":"582.879 h","micros":25550879,"month":""},{"what":"past","details":"2 vCPU, 2 GB RAM, 8 GB disk","quantity":"29.120 h","micros":1018012,"month":""},{"what":"web","details":"1 × V100-SXM2, 16 vCPU, 95 GB RAM, 32 GB disk, beyond what is bought","quantity":"319.880 h","micros":0,"month":""}]}');
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
INSERT INTO "ledger" VALUES(1,1785747600000000,'granted','prj_kz3dkwm0h5x428ch','promotion','credit/crd_kz3dkwm0yq835hq7','USD',5000000,'crd_kz3dkwm0yq835hq7',0,0,0);
INSERT INTO "ledger" VALUES(2,1785805200000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',298465,'ins_kz3h1r80dbdtrp96',1,3,0);
INSERT INTO "ledger" VALUES(3,1785805200000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',454465,'ins_kz3h1r806tdq3ert',1,3,0);
INSERT INTO "ledger" VALUES(4,1785805200000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',44899863,'ins_kz3h1r808v4wsr9h',1,3,0);
INSERT INTO "ledger" VALUES(5,1785805200000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',18899863,'ins_kz3h1r80pt62yxrv',1,3,0);
INSERT INTO "ledger" VALUES(6,1785805200000000,'drawn','prj_kz3dkwm0h5x428ch','credit/crd_kz3dkwm0yq835hq7','project/prj_kz3dkwm0h5x428ch','USD',5000000,'crd_kz3dkwm0yq835hq7',202608,0,0);
INSERT INTO "ledger" VALUES(7,1785863233000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',23436232,'ins_kz3h1r80pt62yxrv',1,3,1);
INSERT INTO "ledger" VALUES(8,1785863233000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',563547,'ins_kz3h1r806tdq3ert',1,3,1);
INSERT INTO "ledger" VALUES(9,1785892033000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,1);
INSERT INTO "ledger" VALUES(10,1785892033000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892054,'ins_kz3h1r808v4wsr9h',1,3,1);
INSERT INTO "ledger" VALUES(11,1785892033000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',301576,'ins_kz3h1r80pt62yxrv',2,5,0);
INSERT INTO "ledger" VALUES(12,1785978433000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,2);
INSERT INTO "ledger" VALUES(13,1785978433000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892055,'ins_kz3h1r808v4wsr9h',1,3,2);
INSERT INTO "ledger" VALUES(14,1785978433000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',2,5,1);
INSERT INTO "ledger" VALUES(15,1786064833000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551013,'ins_kz3h1r80dbdtrp96',1,3,3);
INSERT INTO "ledger" VALUES(16,1786064833000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892055,'ins_kz3h1r808v4wsr9h',1,3,3);
INSERT INTO "ledger" VALUES(17,1786064833000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',2,5,2);
INSERT INTO "ledger" VALUES(18,1786151233000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,4);
INSERT INTO "ledger" VALUES(19,1786151233000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892055,'ins_kz3h1r808v4wsr9h',1,3,4);
INSERT INTO "ledger" VALUES(20,1786151233000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',2,5,3);
INSERT INTO "ledger" VALUES(21,1786237633000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,5);
INSERT INTO "ledger" VALUES(22,1786237633000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892054,'ins_kz3h1r808v4wsr9h',1,3,5);
INSERT INTO "ledger" VALUES(23,1786237633000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',2,5,4);
INSERT INTO "ledger" VALUES(24,1786324033000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551013,'ins_kz3h1r80dbdtrp96',1,3,6);
INSERT INTO "ledger" VALUES(25,1786324033000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892055,'ins_kz3h1r808v4wsr9h',1,3,6);
INSERT INTO "ledger" VALUES(26,1786324033000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052054,'ins_kz3h1r80pt62yxrv',2,5,5);
INSERT INTO "ledger" VALUES(27,1786410433000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,7);
INSERT INTO "ledger" VALUES(28,1786410433000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892055,'ins_kz3h1r808v4wsr9h',1,3,7);
INSERT INTO "ledger" VALUES(29,1786410433000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',2,5,6);
INSERT INTO "ledger" VALUES(30,1786496833000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,8);
INSERT INTO "ledger" VALUES(31,1786496833000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892055,'ins_kz3h1r808v4wsr9h',1,3,8);
INSERT INTO "ledger" VALUES(32,1786496833000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',2,5,7);
INSERT INTO "ledger" VALUES(33,1786583233000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,9);
INSERT INTO "ledger" VALUES(34,1786583233000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892055,'ins_kz3h1r808v4wsr9h',1,3,9);
INSERT INTO "ledger" VALUES(35,1786583233000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',2,5,8);
INSERT INTO "ledger" VALUES(36,1786669633000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551013,'ins_kz3h1r80dbdtrp96',1,3,10);
INSERT INTO "ledger" VALUES(37,1786669633000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892054,'ins_kz3h1r808v4wsr9h',1,3,10);
INSERT INTO "ledger" VALUES(38,1786669633000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',2,5,9);
INSERT INTO "ledger" VALUES(39,1786756033000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,11);
INSERT INTO "ledger" VALUES(40,1786756033000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892055,'ins_kz3h1r808v4wsr9h',1,3,11);
INSERT INTO "ledger" VALUES(41,1786756033000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052054,'ins_kz3h1r80pt62yxrv',2,5,10);
INSERT INTO "ledger" VALUES(42,1786842433000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,12);
INSERT INTO "ledger" VALUES(43,1786842433000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892055,'ins_kz3h1r808v4wsr9h',1,3,12);
INSERT INTO "ledger" VALUES(44,1786842433000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',2,5,11);
INSERT INTO "ledger" VALUES(45,1786928833000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551013,'ins_kz3h1r80dbdtrp96',1,3,13);
INSERT INTO "ledger" VALUES(46,1786928833000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892055,'ins_kz3h1r808v4wsr9h',1,3,13);
INSERT INTO "ledger" VALUES(47,1786928833000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',2,5,12);
INSERT INTO "ledger" VALUES(48,1787015233000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,14);
INSERT INTO "ledger" VALUES(49,1787015233000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',82892055,'ins_kz3h1r808v4wsr9h',1,3,14);
INSERT INTO "ledger" VALUES(50,1787015233000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',2,5,13);
INSERT INTO "ledger" VALUES(51,1787069233000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',2520500000,'pur_m0at0xv8sb51ekr8',0,0,0);
INSERT INTO "ledger" VALUES(52,1787072833000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',750478,'ins_kz3h1r80pt62yxrv',2,5,14);
INSERT INTO "ledger" VALUES(53,1787101633000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,15);
INSERT INTO "ledger" VALUES(54,1787101633000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',55676788,'ins_kz3h1r808v4wsr9h',1,3,15);
INSERT INTO "ledger" VALUES(55,1787101633000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',10001983,'ins_kz3h1r80pt62yxrv',3,8,0);
INSERT INTO "ledger" VALUES(56,1787188033000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551013,'ins_kz3h1r80dbdtrp96',1,3,16);
INSERT INTO "ledger" VALUES(57,1787188033000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',34892055,'ins_kz3h1r80pt62yxrv',3,8,1);
INSERT INTO "ledger" VALUES(58,1787274433000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,17);
INSERT INTO "ledger" VALUES(59,1787274433000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',33692055,'ins_kz3h1r80pt62yxrv',3,8,2);
INSERT INTO "ledger" VALUES(60,1787332034000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',22630609,'ins_kz3h1r80pt62yxrv',3,8,3);
INSERT INTO "ledger" VALUES(61,1787360834000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,18);
INSERT INTO "ledger" VALUES(62,1787360834000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',301564,'ins_kz3h1r80pt62yxrv',4,10,0);
INSERT INTO "ledger" VALUES(63,1787447234000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,19);
INSERT INTO "ledger" VALUES(64,1787447234000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',4,10,1);
INSERT INTO "ledger" VALUES(65,1787533634000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551013,'ins_kz3h1r80dbdtrp96',1,3,20);
INSERT INTO "ledger" VALUES(66,1787533634000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',4,10,2);
INSERT INTO "ledger" VALUES(67,1787620034000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,21);
INSERT INTO "ledger" VALUES(68,1787620034000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',4,10,3);
INSERT INTO "ledger" VALUES(69,1787706434000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,22);
INSERT INTO "ledger" VALUES(70,1787706434000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052054,'ins_kz3h1r80pt62yxrv',4,10,4);
INSERT INTO "ledger" VALUES(71,1787792834000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551013,'ins_kz3h1r80dbdtrp96',1,3,23);
INSERT INTO "ledger" VALUES(72,1787792834000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',4,10,5);
INSERT INTO "ledger" VALUES(73,1787879234000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,24);
INSERT INTO "ledger" VALUES(74,1787879234000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',4,10,6);
INSERT INTO "ledger" VALUES(75,1787965634000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,25);
INSERT INTO "ledger" VALUES(76,1787965634000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',4,10,7);
INSERT INTO "ledger" VALUES(77,1788052034000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551013,'ins_kz3h1r80dbdtrp96',1,3,26);
INSERT INTO "ledger" VALUES(78,1788052034000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',4,10,8);
INSERT INTO "ledger" VALUES(79,1788138434000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,27);
INSERT INTO "ledger" VALUES(80,1788138434000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052054,'ins_kz3h1r80pt62yxrv',4,10,9);
INSERT INTO "ledger" VALUES(81,1788224834000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,28);
INSERT INTO "ledger" VALUES(82,1788224834000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',4,10,10);
INSERT INTO "ledger" VALUES(83,1788224834000000,'tax','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','tax','USD',3145370,'invoice/1',0,0,0);
INSERT INTO "ledger" VALUES(84,1788224834000000,'tax','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','tax','USD',789337421,'invoice/2',0,0,0);
INSERT INTO "ledger" VALUES(85,1788311234000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,29);
INSERT INTO "ledger" VALUES(86,1788311234000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',4,10,11);
INSERT INTO "ledger" VALUES(87,1788365234000000,'payment','prj_kz3dkwm0h5x428ch','cash','project/prj_kz3dkwm0h5x428ch','USD',100000000,'invoice/2',0,87,0);
INSERT INTO "ledger" VALUES(88,1788397634000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551013,'ins_kz3h1r80dbdtrp96',1,3,30);
INSERT INTO "ledger" VALUES(89,1788397634000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',4,10,12);
INSERT INTO "ledger" VALUES(90,1788484034000000,'charge','prj_kz3dkwm0e4pjmq3m','project/prj_kz3dkwm0e4pjmq3m','revenue','USD',551014,'ins_kz3h1r80dbdtrp96',1,3,31);
INSERT INTO "ledger" VALUES(91,1788484034000000,'charge','prj_kz3dkwm0h5x428ch','project/prj_kz3dkwm0h5x428ch','revenue','USD',1052055,'ins_kz3h1r80pt62yxrv',4,10,13);
CREATE TABLE member (
    id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisation (id),
    name TEXT NOT NULL,
    is_operator BIGINT NOT NULL,  -- runs the house: hosts, organisations
    created_at_us BIGINT NOT NULL,
    removed_at_us BIGINT,
    UNIQUE (organisation_id, name)
);
INSERT INTO "member" VALUES('mem_kz3dkwm0rycrsnzb','org_kz3dkwm06fv46bzs','operator',1,1785747600000000,NULL);
INSERT INTO "member" VALUES('mem_kz3dkwm0zpxtpwf4','org_kz3dkwm02hde376w','owner@acme',0,1785747600000000,NULL);
INSERT INTO "member" VALUES('mem_kz3dkwm0pyjz1qa4','org_kz3dkwm0699ny4hr','owner@other',0,1785747600000000,NULL);
INSERT INTO "member" VALUES('mem_kz3dkwm0rzspxp68','org_kz3dkwm02hde376w','member@acme',0,1785747600000000,NULL);
INSERT INTO "member" VALUES('mem_kz3dkwm06faepvvs','org_kz3dkwm02hde376w','viewer@acme',0,1785747600000000,NULL);
INSERT INTO "member" VALUES('mem_kz3dkwm0yavv40p5','org_kz3dkwm02hde376w','billing@acme',0,1785747600000000,NULL);
CREATE TABLE member_role (
    member_id TEXT NOT NULL REFERENCES member (id),
    project_id TEXT NOT NULL,   -- empty: every project of the organisation
    role TEXT NOT NULL,
    PRIMARY KEY (member_id, project_id)
);
INSERT INTO "member_role" VALUES('mem_kz3dkwm0rycrsnzb','','owner');
INSERT INTO "member_role" VALUES('mem_kz3dkwm0zpxtpwf4','','owner');
INSERT INTO "member_role" VALUES('mem_kz3dkwm0pyjz1qa4','','owner');
INSERT INTO "member_role" VALUES('mem_kz3dkwm0rzspxp68','','member');
INSERT INTO "member_role" VALUES('mem_kz3dkwm06faepvvs','','viewer');
INSERT INTO "member_role" VALUES('mem_kz3dkwm0yavv40p5','','billing');
CREATE TABLE meter_behind (
    instance_id TEXT PRIMARY KEY
);
CREATE TABLE meter_cursor (
    name TEXT PRIMARY KEY,
    event_id TEXT NOT NULL,       -- the newest event that was read
    intervals BIGINT NOT NULL     -- how many were made so far: the number of the newest
);
INSERT INTO "meter_cursor" VALUES('meter','evt_m0jmmzegk35fxy5q',4);
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
INSERT INTO "meter_instance" VALUES('ins_kz3h1r808v4wsr9h','prj_kz3dkwm0h5x428ch',3,1,1785754800000000,'running',3,1785754800000000,1785754800000000,3,'{"gpu":"V100-SXM2","gpus":1,"vcpus":16,"ram_bytes":102005473280,"disk_bytes":34359738368,"snapshots_bytes":0,"addresses":0,"mode":"on-demand","host":"hst_kz3dkwm08dkdh8sq","region":"home","name":"web","member":"mem_kz3dkwm0zpxtpwf4","labels":"{\"team\":\"red\"}"}');
INSERT INTO "meter_instance" VALUES('ins_kz3h1r80pt62yxrv','prj_kz3dkwm0h5x428ch',10,4,1787332034000000,'stopped',10,1787332034000000,NULL,NULL,'{"gpu":"","gpus":0,"vcpus":0,"ram_bytes":0,"disk_bytes":34359738368,"snapshots_bytes":0,"addresses":0,"mode":"spot","host":"hst_kz3dkwm08dkdh8sq","region":"home","name":"batch","member":"mem_kz3dkwm0zpxtpwf4","labels":"{}"}');
INSERT INTO "meter_instance" VALUES('ins_kz3h1r806tdq3ert','prj_kz3dkwm0h5x428ch',5,0,1785859633000000,'gone',NULL,0,NULL,NULL,'{}');
INSERT INTO "meter_instance" VALUES('ins_kz3h1r80dbdtrp96','prj_kz3dkwm0e4pjmq3m',3,1,1785754800000000,'running',3,1785754800000000,1785754800000000,3,'{"gpu":"","gpus":0,"vcpus":1,"ram_bytes":1073741824,"disk_bytes":8589934592,"snapshots_bytes":0,"addresses":0,"mode":"on-demand","host":"hst_kz3dkwm08dkdh8sq","region":"home","name":"theirs","member":"mem_kz3dkwm0pyjz1qa4","labels":"{}"}');
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
INSERT INTO "meter_interval" VALUES(1,'ins_kz3h1r80pt62yxrv',3,0,1,'prj_kz3dkwm0h5x428ch',1785754800000000,1785859633000000,1785754800000000,1,0,'V100-SXM2',1,16,102005473280,34359738368,0,0,'spot','hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}');
INSERT INTO "meter_interval" VALUES(2,'ins_kz3h1r806tdq3ert',3,0,1,'prj_kz3dkwm0h5x428ch',1785754800000000,1785859633000000,1785754800000000,1,0,'',0,2,2147483648,8589934592,0,0,'on-demand','hst_kz3dkwm0a49byb9e','home','past','mem_kz3dkwm0zpxtpwf4','{}');
INSERT INTO "meter_interval" VALUES(3,'ins_kz3h1r80pt62yxrv',5,0,2,'prj_kz3dkwm0h5x428ch',1785863233000000,1787072833000000,NULL,0,0,'',0,0,0,34359738368,0,0,'spot','hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}');
INSERT INTO "meter_interval" VALUES(4,'ins_kz3h1r80pt62yxrv',8,0,3,'prj_kz3dkwm0h5x428ch',1787072833000000,1787328434000000,1787072833000000,1,0,'V100-SXM2',1,16,102005473280,34359738368,0,0,'spot','hst_kz3dkwm08dkdh8sq','home','batch','mem_kz3dkwm0zpxtpwf4','{}');
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
INSERT INTO "organisation" VALUES('org_kz3dkwm06fv46bzs','house',1785747600000000);
INSERT INTO "organisation" VALUES('org_kz3dkwm02hde376w','acme',1785747600000000);
INSERT INTO "organisation" VALUES('org_kz3dkwm0699ny4hr','other',1785747600000000);
CREATE TABLE price_book (
    version BIGINT PRIMARY KEY,
    taken_at_us BIGINT NOT NULL,
    member TEXT NOT NULL,         -- who brought it
    text TEXT NOT NULL            -- as it was given
);
INSERT INTO "price_book" VALUES(1,1785747600000000,'mem_kz3dkwm0rycrsnzb','- from: 2026-01-01
  currency: USD
  gpu: {V100: {on-demand: 3.06/hour, monthly: 2233/month, spot: 1.06/hour}}
  vcpu: 0.01/hour
  ram: 0.002/hour
  disk: 1/month
  egress: 0.09
  refund: 50%
  tax: {VAT: 20%}
- from: 2026-08-20
  currency: USD
  gpu: {V100: {on-demand: 2.75/hour, monthly: 2000/month, spot: 1.01/hour}}
  vcpu: 0.01/hour
  ram: 0.002/hour
  disk: 1/month
  egress: 0.09
  refund: 50%
  tax: {VAT: 20%}
');
CREATE TABLE price_period (
    version BIGINT NOT NULL REFERENCES price_book (version),
    from_us BIGINT NOT NULL,      -- never before the book was taken: the past keeps its prices
    until_us BIGINT NOT NULL,
    prices TEXT NOT NULL,         -- JSON: see bill/price/model.py
    PRIMARY KEY (version, from_us),
    CHECK (until_us > from_us)
);
INSERT INTO "price_period" VALUES(1,1785747600000000,1787184000000000,'{"currency":"USD","rates":{"CNY":7189000,"EUR":924000,"GBP":783000,"JPY":151353000,"USD":1000000},"house":{"gpu":{"V100-PCIe":{"on_demand":2233800000,"monthly":2233000000,"spot":773800000},"V100-PCIe-32":{"on_demand":2233800000,"monthly":2233000000,"spot":773800000},"V100-SXM2":{"on_demand":2233800000,"monthly":2233000000,"spot":773800000},"V100-SXM2-32":{"on_demand":2233800000,"monthly":2233000000,"spot":773800000}},"vcpu":{"on_demand":7300000,"monthly":null,"spot":null},"ram":{"on_demand":1460000,"monthly":null,"spot":null},"disk":{"on_demand":1000000,"monthly":null,"spot":null},"snapshot":null,"address":null,"egress":90000},"regions":{},"hosts":{},"minimum_seconds":0,"monthly_bp":0,"spot_bp":0,"reserved_bp":{},"upfront_bp":0,"long_term":[],"refund_bp":5000,"tax_name":"VAT","tax_bp":2000}');
INSERT INTO "price_period" VALUES(1,1787184000000000,4611686018427387904,'{"currency":"USD","rates":{"CNY":7189000,"EUR":924000,"GBP":783000,"JPY":151353000,"USD":1000000},"house":{"gpu":{"V100-PCIe":{"on_demand":2007500000,"monthly":2000000000,"spot":737300000},"V100-PCIe-32":{"on_demand":2007500000,"monthly":2000000000,"spot":737300000},"V100-SXM2":{"on_demand":2007500000,"monthly":2000000000,"spot":737300000},"V100-SXM2-32":{"on_demand":2007500000,"monthly":2000000000,"spot":737300000}},"vcpu":{"on_demand":7300000,"monthly":null,"spot":null},"ram":{"on_demand":1460000,"monthly":null,"spot":null},"disk":{"on_demand":1000000,"monthly":null,"spot":null},"snapshot":null,"address":null,"egress":90000},"regions":{},"hosts":{},"minimum_seconds":0,"monthly_bp":0,"spot_bp":0,"reserved_bp":{},"upfront_bp":0,"long_term":[],"refund_bp":5000,"tax_name":"VAT","tax_bp":2000}');
CREATE TABLE project (
    id TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisation (id),
    name TEXT NOT NULL,
    quota TEXT NOT NULL,        -- JSON, see tenant/model.py
    network_number BIGINT NOT NULL,  -- which part of the address range is the project's own
    created_at_us BIGINT NOT NULL,
    removed_at_us BIGINT        -- its row stays: instances that are gone, and bills, still name it
);
INSERT INTO "project" VALUES('prj_kz3dkwm0ctrzh212','org_kz3dkwm06fv46bzs','default','{"disk_bytes":null,"gpus":{},"gpus_default":null,"instances":null,"ram_bytes":null,"vcpus":null}',0,1785747600000000,NULL);
INSERT INTO "project" VALUES('prj_kz3dkwm0h5x428ch','org_kz3dkwm02hde376w','default','{"disk_bytes":null,"gpus":{},"gpus_default":null,"instances":null,"ram_bytes":null,"vcpus":null}',1,1785747600000000,NULL);
INSERT INTO "project" VALUES('prj_kz3dkwm0e4pjmq3m','org_kz3dkwm0699ny4hr','default','{"disk_bytes":null,"gpus":{},"gpus_default":null,"instances":null,"ram_bytes":null,"vcpus":null}',2,1785747600000000,NULL);
INSERT INTO "project" VALUES('prj_kz3dkwm0hkws3gd2','org_kz3dkwm02hde376w','empty','{"disk_bytes":null,"gpus":{},"gpus_default":null,"instances":null,"ram_bytes":null,"vcpus":null}',3,1785747600000000,NULL);
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
INSERT INTO "purchase" VALUES('pur_m0at0xv8sb51ekr8','prj_kz3dkwm0h5x428ch','ins_kz3h1r808v4wsr9h','monthly',0,0,1,1789747633000000,0);
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
INSERT INTO "purchase_term" VALUES('pur_m0at0xv8sb51ekr8',0,'bought','ins_kz3h1r808v4wsr9h',1787069233000000,1789747633000000,'V100-SXM2',1,16,102005473280,34359738368,'USD',2520500000,2520500000);
CREATE TABLE schema_migration (version BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO "schema_migration" VALUES(1,'events','9cb51711ab5f2e7758c637f053b9a312e960c2281c8d886624c1d824f660682c','2026-08-03T09:00:00+00:00');
INSERT INTO "schema_migration" VALUES(2,'offers','86f0d2802918315f84799fe25959243e6c47ef97f1387c57797647614d541516','2026-08-03T09:00:00+00:00');
INSERT INTO "schema_migration" VALUES(3,'offer_shapes','a41866dfc3b324286667bab8f7a22c655c6d375baabfc5fb287dc4111f717c90','2026-08-03T09:00:00+00:00');
INSERT INTO "schema_migration" VALUES(4,'cloud','2d6c1e05b8afbe322a78034d9178c7e3695eb49bea3fccec133ab3f7027c3559','2026-08-03T09:00:00+00:00');
INSERT INTO "schema_migration" VALUES(5,'bill','8febc88cffac868b9972f8ca737136dc4a8a464896114eab8bd4538703c1f901','2026-08-03T09:00:00+00:00');
INSERT INTO "schema_migration" VALUES(6,'quantities','552f2d5593f558bf5b46d6bff4eae12d5b44df24510ff072ead5b601735604f3','2026-08-03T09:00:00+00:00');
INSERT INTO "schema_migration" VALUES(7,'bill_by_name','47e6e171c1e0f1d59c08e1fbe636d0d241ca5d6bd57d76bb97f6464a0ee198a8','2026-08-03T09:00:00+00:00');
INSERT INTO "schema_migration" VALUES(8,'bill_by_project','a58c9cc5ad8fa0f44914305393f57a3f6b69003ba4668ea8ea02199354953992','2026-08-03T09:00:00+00:00');
CREATE TABLE snapshot (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    instance_id TEXT NOT NULL REFERENCES instance (id),
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at_us BIGINT NOT NULL, size_bytes BIGINT NOT NULL DEFAULT 0,
    UNIQUE (instance_id, name)
);
INSERT INTO "snapshot" VALUES('snp_kz6revv82b3374qt','prj_kz3dkwm0h5x428ch','ins_kz3h1r808v4wsr9h','before','ready',1785859633000000,0);
CREATE TABLE trial_balance (
    currency TEXT PRIMARY KEY,
    debits BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    CHECK (debits = credits)
);
INSERT INTO "trial_balance" VALUES('USD',4874705952,4874705952);
CREATE TABLE worker (
    id TEXT PRIMARY KEY,
    until_us BIGINT NOT NULL
);
INSERT INTO "worker" VALUES('73516-520f24083d83',1788538040000000);
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
