"""What verification reads, without the types of the biller."""

from typing import Any

Named = dict[str, Any]
"""A row of a table, by the names of its columns."""
Said = dict[str, Any]
"""What an event says."""
