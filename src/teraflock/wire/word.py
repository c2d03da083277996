"""Text fields with a fixed set of values."""

from msgspec import Meta


def closed(*words: str) -> Meta:
    """Document the values of a text field of a response as a fixed set.

    The client accepts any text, so that an older client works with a newer server. The values are repeated here so that
    `tera` starts without importing the domain; a test compares them.
    """
    return Meta(extra_json_schema={"enum": [str(word) for word in words]})
