-- When the provider was last asked to end a rented machine. After a crash, it is the only record of when its cost ended.
ALTER TABLE host ADD COLUMN ending_at_us BIGINT;
