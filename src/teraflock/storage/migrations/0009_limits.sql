-- The most an organisation may have, over all its projects. Organisations that existed before get a limit on projects
-- alone; the operator's own gets none.
ALTER TABLE organisation ADD COLUMN quota TEXT NOT NULL DEFAULT '{}';  -- JSON, see tenant/model.py
UPDATE organisation SET quota = '{"projects":20}' WHERE NOT EXISTS
    (SELECT 1 FROM member m WHERE m.organisation_id = organisation.id AND m.is_operator = 1);
