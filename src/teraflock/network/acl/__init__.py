"""Network ACLs: numbered rules at the border of a project's network."""
