-- Balancers have events, so that what they send is charged, and can move to another host.
ALTER TABLE balancer ADD COLUMN sequence BIGINT NOT NULL DEFAULT 0;    -- of its newest event; 0: from before this column
ALTER TABLE balancer ADD COLUMN created_by TEXT NOT NULL DEFAULT '';   -- the member who created it
