-- How the cards of own hosts should be divided. A card without a row stays as its host reports it.
CREATE TABLE host_slicing (
    host_id TEXT NOT NULL REFERENCES host (id),
    address TEXT NOT NULL,      -- the PCI address of the card
    gpu TEXT NOT NULL,          -- the GPU model of the whole card
    profiles TEXT NOT NULL,     -- such as `3g.71gb 3g.71gb`; empty: whole
    problem TEXT NOT NULL,      -- why the host refused it; empty: it did not
    asked_at_us BIGINT NOT NULL,
    PRIMARY KEY (host_id, address)
);
