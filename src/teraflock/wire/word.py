"""Words of which there are only some."""

from msgspec import Meta


def closed(*words: str) -> Meta:
    """Marks a text of an answer as a closed set in the document.

    It is still read as any text, so that an older client bears a newer server. The words are written a second time,
    so that a cold `tera` loads nothing of the domain; a test compares them.
    """
    return Meta(extra_json_schema={"enum": [str(word) for word in words]})
