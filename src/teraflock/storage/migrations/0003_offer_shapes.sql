-- Offers alike in all but place and price, as the planner looks at them: a hundred thousand are a few thousand of these.
-- Written with the offers themselves, by the source they come from.
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
CREATE INDEX offer_shape_by_source ON offer_shape (source);

INSERT INTO offer_shape
SELECT source, provider, instance_type, kind, gpu, gpu_name, gpu_count, gpu_share, gpu_memory_bytes, vcpus, ram_bytes, mode,
    term_months, standing, currency,
    CASE WHEN flags LIKE '%suspect:price%' OR flags LIKE '%from-price%' OR flags LIKE '%gpu-only%' THEN 1 ELSE 0 END,
    MIN(price_micros_per_month), COUNT(*), MAX(as_of)
FROM offer WHERE kind <> 'none'
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16;
