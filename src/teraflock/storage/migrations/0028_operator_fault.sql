-- An interval that ended by no act of the tenant: the code and the glossary call this the operator's fault.
ALTER TABLE meter_interval RENAME COLUMN house_fault TO operator_fault;
