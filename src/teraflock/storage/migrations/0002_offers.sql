-- Offers that stand (`offer`), those that a later import replaced (`offer_past`), and where they come from.
-- Prices are micro-units of `currency` for the whole instance and 730 hours: an exact integer for every period.

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

-- (id, import_number) names a row. No key says so: ids are hashes, and keeping 100,000 of them in order would cost an
-- import a sixth of its time, while the importer itself sees to it that they differ.
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

-- a question names a card, else a kind; both read their offers in the order of price, and count them by date
CREATE INDEX offer_by_gpu ON offer (gpu, standing, currency, price_micros_per_month, as_of) WHERE gpu <> '';
CREATE INDEX offer_by_kind ON offer (kind, standing, currency, price_micros_per_month, as_of);

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

CREATE INDEX offer_past_by_gpu ON offer_past (gpu, since) WHERE gpu <> '';

-- How many offers there are of each card, standing and date: what the line under every list says, without counting
-- a hundred thousand entries of an index for it. Written with the offers themselves.
CREATE TABLE offer_count (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    gpu TEXT NOT NULL,
    standing TEXT NOT NULL,
    as_of TEXT NOT NULL,
    offers BIGINT NOT NULL,
    PRIMARY KEY (kind, gpu, standing, as_of, source)
);
