-- How long runs took from the launch of a machine to the start of their command, for each place.

CREATE TABLE run_start (
    place TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    seconds BIGINT NOT NULL,
    PRIMARY KEY (place, at_us)
);
