"""What moves by itself: one file per loop, each load → decide → apply."""
