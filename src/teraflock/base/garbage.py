"""How often a process searches its objects for garbage.

Almost nothing here creates reference cycles. Imports and estimates create very many other objects, which Python would
search again and again.
"""

import gc
from typing import Final

OBJECTS: Final = 2_000_000
"""How many more objects must exist before the next search."""
OBJECTS_IN_SERVER: Final = 20_000  # about twenty pages of instances


def collect_rarely() -> None:
    """For a process that ends soon, or that does one task after the other."""
    gc.set_threshold(OBJECTS)


def settle() -> None:
    """For a server that has loaded everything: never search what exists now, and search rarely after that.

    A search before that takes a tenth of a second and finds less than two thousand objects.
    """
    gc.freeze()
    gc.set_threshold(OBJECTS_IN_SERVER, 20, 50)
