-- A bill by instance adds up all lines of a month: from this index alone, without reading the lines.
CREATE INDEX charge_by_name ON charge (project_id, month, name, micros);
