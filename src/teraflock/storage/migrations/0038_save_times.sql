-- How long saves of checkpoints took, and how often the command of a run was told to save.

ALTER TABLE run_checkpoint ADD COLUMN saved_seconds DOUBLE PRECISION;

ALTER TABLE run ADD COLUMN save_every_seconds BIGINT;
