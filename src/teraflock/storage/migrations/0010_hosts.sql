-- How full a host's pool is, whether its disk limits hold, and which networks its guests may reach besides the internet.
ALTER TABLE host ADD COLUMN disk_used_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE host ADD COLUMN disk_limits TEXT NOT NULL DEFAULT 'hold';
ALTER TABLE host ADD COLUMN allow_out TEXT NOT NULL DEFAULT '';  -- networks, separated by spaces
