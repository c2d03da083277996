"""How cards are divided into slices (MIG)."""
