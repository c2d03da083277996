-- `outdated`: another offer has a newer price of the same machine.
ALTER TABLE offer ADD COLUMN outdated BIGINT NOT NULL DEFAULT 0;
ALTER TABLE offer_past ADD COLUMN outdated BIGINT NOT NULL DEFAULT 0;

-- `place` is the key by which filters find the offers of a region and zone.
UPDATE offer SET place = provider || '::' || region || '::' || zone;
UPDATE offer_past SET place = provider || '::' || region || '::' || zone;

-- As imports do it from now on: the same provider, GPUs and purchase mode; the same instance type and region, where the
-- older offer has them.
UPDATE offer SET outdated = 1 FROM (
    SELECT provider, gpu, gpu_count, gpu_share, mode, term_months, instance_type, region, MAX(as_of) AS newest FROM offer
    WHERE kind = 'gpu' AND standing = 'priced' AND flags NOT LIKE '%suspect:price%' AND flags NOT LIKE '%from-price%'
        AND flags NOT LIKE '%gpu-only%'
    GROUP BY provider, gpu, gpu_count, gpu_share, mode, term_months, instance_type, region
) AS fresh
WHERE offer.kind = 'gpu' AND offer.standing = 'priced' AND offer.provider = fresh.provider AND offer.gpu = fresh.gpu
    AND offer.gpu_count = fresh.gpu_count AND offer.gpu_share = fresh.gpu_share
    AND COALESCE(offer.mode, '') = COALESCE(fresh.mode, '')
    AND COALESCE(offer.term_months, 0) = COALESCE(fresh.term_months, 0)
    AND offer.as_of <> '' AND offer.as_of < fresh.newest AND fresh.newest NOT LIKE offer.as_of || '%'
    AND offer.instance_type = fresh.instance_type AND offer.region = fresh.region;
UPDATE offer SET outdated = 1 FROM (
    SELECT provider, gpu, gpu_count, gpu_share, mode, term_months, instance_type, MAX(as_of) AS newest FROM offer
    WHERE kind = 'gpu' AND standing = 'priced' AND flags NOT LIKE '%suspect:price%' AND flags NOT LIKE '%from-price%'
        AND flags NOT LIKE '%gpu-only%'
    GROUP BY provider, gpu, gpu_count, gpu_share, mode, term_months, instance_type
) AS fresh
WHERE offer.kind = 'gpu' AND offer.standing = 'priced' AND offer.provider = fresh.provider AND offer.gpu = fresh.gpu
    AND offer.gpu_count = fresh.gpu_count AND offer.gpu_share = fresh.gpu_share
    AND COALESCE(offer.mode, '') = COALESCE(fresh.mode, '')
    AND COALESCE(offer.term_months, 0) = COALESCE(fresh.term_months, 0)
    AND offer.as_of <> '' AND offer.as_of < fresh.newest AND fresh.newest NOT LIKE offer.as_of || '%'
    AND fresh.instance_type IN (offer.instance_type, '') AND offer.region = '';
UPDATE offer SET outdated = 1 FROM (
    SELECT provider, gpu, gpu_count, gpu_share, mode, term_months, MAX(as_of) AS newest FROM offer
    WHERE kind = 'gpu' AND standing = 'priced' AND flags NOT LIKE '%suspect:price%' AND flags NOT LIKE '%from-price%'
        AND flags NOT LIKE '%gpu-only%'
    GROUP BY provider, gpu, gpu_count, gpu_share, mode, term_months
) AS fresh
WHERE offer.kind = 'gpu' AND offer.standing = 'priced' AND offer.provider = fresh.provider AND offer.gpu = fresh.gpu
    AND offer.gpu_count = fresh.gpu_count AND offer.gpu_share = fresh.gpu_share
    AND COALESCE(offer.mode, '') = COALESCE(fresh.mode, '')
    AND COALESCE(offer.term_months, 0) = COALESCE(fresh.term_months, 0)
    AND offer.as_of <> '' AND offer.as_of < fresh.newest AND fresh.newest NOT LIKE offer.as_of || '%'
    AND (offer.instance_type = '' OR offer.flags LIKE '%inferred:name%');

-- Counts also distinguish places, so that filters by country read few rows, and what a list hides by default: parts of
-- cards and outdated prices.
DROP TABLE offer_count;
CREATE TABLE offer_count_next (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    gpu TEXT NOT NULL,
    standing TEXT NOT NULL,
    as_of TEXT NOT NULL,
    gpu_share DOUBLE PRECISION NOT NULL,
    outdated BIGINT NOT NULL,
    place TEXT NOT NULL,
    offers BIGINT NOT NULL,
    PRIMARY KEY (kind, gpu, standing, as_of, gpu_share, outdated, place, source)
);
INSERT INTO offer_count_next
SELECT source, kind, gpu, standing, as_of, gpu_share, outdated, place, COUNT(*) FROM offer
GROUP BY source, kind, gpu, standing, as_of, gpu_share, outdated, place;
ALTER TABLE offer_count_next RENAME TO offer_count;

-- A shape has one date, so that its price and its date belong together.
DROP TABLE offer_shape;
CREATE TABLE offer_shape_next (
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
    as_of TEXT NOT NULL,
    outdated BIGINT NOT NULL,
    doubtful BIGINT NOT NULL,
    price_micros_per_month BIGINT,
    offers BIGINT NOT NULL
);
INSERT INTO offer_shape_next
SELECT source, provider, instance_type, kind, gpu, gpu_name, gpu_count, gpu_share, gpu_memory_bytes, vcpus, ram_bytes, mode,
    term_months, standing, currency, as_of, outdated,
    CASE WHEN flags LIKE '%suspect:price%' OR flags LIKE '%from-price%' OR flags LIKE '%gpu-only%' THEN 1 ELSE 0 END,
    MIN(price_micros_per_month), COUNT(*)
FROM offer WHERE kind <> 'none'
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18;
ALTER TABLE offer_shape_next RENAME TO offer_shape;
CREATE INDEX offer_shape_by_source ON offer_shape (source);
