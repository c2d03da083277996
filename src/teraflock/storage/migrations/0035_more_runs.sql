-- Runs with several nodes: the instances beside the first, with their logs. JSON.

ALTER TABLE run ADD COLUMN others TEXT NOT NULL DEFAULT '[]';

ALTER TABLE run_checkpoint ADD COLUMN bucket TEXT NOT NULL DEFAULT '';  -- the region whose bucket has it; empty: the server
