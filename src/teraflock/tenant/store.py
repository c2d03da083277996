"""SQL that several nouns share. The SQL of each noun is in its folder."""

from collections.abc import Iterable, Mapping


def among(column: str, only: Iterable[str] | None) -> tuple[str, Mapping[str, str]]:
    """A SQL condition that a column has one of these values, with the values; None: any value."""
    if only is None:
        return "", {}
    values = {f"among_{index}": value for index, value in enumerate(only)}
    return f" AND {column} IN ({', '.join(':' + name for name in values) or 'NULL'})", values
