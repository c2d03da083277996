import pytest

from teraflock.storage.database import Misuse
from teraflock.storage.sql_text import parsed, statements


@pytest.mark.parametrize(
    ("sql", "questions", "dollars", "names"),
    [
        ("SELECT 1", "SELECT 1", "SELECT 1", ()),
        (":a, :b, :a", "?, ?, ?", "$1, $2, $1", ("a", "b")),
        ("x = :long_name2)", "x = ?)", "x = $1)", ("long_name2",)),
        ("':a' || :b", "':a' || ?", "':a' || $1", ("b",)),
        ("'it''s :a' || :b", "'it''s :a' || ?", "'it''s :a' || $1", ("b",)),
        ('":a" = :b', '":a" = ?', '":a" = $1', ("b",)),
        ("x::TEXT = :b::TEXT", "x::TEXT = ?::TEXT", "x::TEXT = $1::TEXT", ("b",)),
        ("1 -- :a it's\n + :b", "1 -- :a it's\n + ?", "1 -- :a it's\n + $1", ("b",)),
        ("/* :a\n' */ :b", "/* :a\n' */ ?", "/* :a\n' */ $1", ("b",)),
        ("'100%' LIKE :b", "'100%' LIKE ?", "'100%' LIKE $1", ("b",)),
        ("- 5 - :b - 1", "- 5 - ? - 1", "- 5 - $1 - 1", ("b",)),
        ("'12:30' || '12' : 30", "'12:30' || '12' : 30", "'12:30' || '12' : 30", ()),
    ],
)
def test_only_real_names_are_found(sql: str, questions: str, dollars: str, names: tuple[str, ...]) -> None:
    found = parsed(sql)
    assert (found.questions, found.dollars.decode(), found.names) == (questions, dollars, names)


def test_several_statements_are_refused() -> None:
    with pytest.raises(Misuse, match="one statement"):
        parsed("SELECT 1; SELECT 2")
    assert parsed("SELECT ';'; -- the end;").names == ()


def test_values_are_ordered_and_repeated() -> None:
    found = parsed(":b, :a, :b")
    assert found.values({"a": 1, "b": 2}) == (2, 1)
    assert found.in_place((2, 1)) == [2, 1, 2]


@pytest.mark.parametrize("given", [{}, {"a": 1}, {"a": 1, "c": 2}, {"a": 1, "b": 2, "c": 3}])
def test_missing_or_unknown_values_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(Misuse, match=r"needs the values \['a', 'b'\]"):
        parsed(":a :b").values(given)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        (" ;; \n;", []),
        ("-- nothing; here\n/* nor; here */", []),
        ("A; B", ["A", "B"]),
        ("A;\n-- about B; its 'use'\nB;\n-- the end", ["A", "-- about B; its 'use'\nB"]),
        ("INSERT ';' ; \"x;y\" /* ; */ Z;", ["INSERT ';'", '"x;y" /* ; */ Z']),
        ("'it''s; one'; B", ["'it''s; one'", "B"]),
    ],
)
def test_a_script_is_split_into_statements(script: str, expected: list[str]) -> None:
    assert list(statements(script)) == expected
