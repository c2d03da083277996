"""The cells of a printed table, and the numbers in them."""

from decimal import Decimal


def cells(table: str) -> list[dict[str, str]]:
    """The rows of a wide table by title. Two characters that are blank in every line end a column."""
    lines = table.splitlines()
    width = max(map(len, lines))
    blank = [all(line[i : i + 1] in ("", " ") for line in lines) for i in range(width)] + [True, True]
    edges = [0] + [i + 1 for i in range(1, width) if blank[i] and blank[i - 1] and not blank[i + 1]]
    spans = list(zip(edges, [*edges[1:], None], strict=True))
    titles, *rows = ([line[low:high].strip() for low, high in spans] for line in lines)
    return [dict(zip(titles, row, strict=True)) for row in rows]


def number(text: str) -> float | None:
    """`1,234.50?+` → 1234.5."""
    plain = text.rstrip("?+").replace(",", "")
    return float(plain) if plain.replace(".", "", 1).isdigit() else None


def rounded(micros: int | None, digits: int) -> float | None:
    """Half to even, as all amounts are."""
    return None if micros is None else float(f"{Decimal(micros) / 10**6:.{digits}f}")
