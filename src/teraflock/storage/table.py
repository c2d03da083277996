"""The row codec of all stores: columns, INSERT, encoding and decoding, derived from a Struct.

A field is stored in a column of its name, except:
- a datetime is stored in `NAME_us`, as microseconds since 1970;
- a Struct named in `embed` has its own columns, in the place of its field and with the given prefix;
- any other Struct, mapping or tuple is stored as JSON text.
A boolean is 0 or 1. None is NULL, but for an enum or a JSON value None is the empty text.

Rows are tuples in the order of `columns`. A store writes its WHERE, ORDER and UPDATE as plain SQL.
"""

import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum, StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Generic, Literal, NewType, TypeVar, Union, get_args, get_origin

import msgspec

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.storage.database import Row, Transaction

T = TypeVar("T", bound=msgspec.Struct)
_Convert = Callable[[Any], Any]


class Table(Generic[T]):
    def __init__(
        self,
        name: str,
        of: type[T],
        *,
        embed: Mapping[str, str] | None = None,
        leave_out: tuple[str, ...] = (),
    ) -> None:
        """`embed` maps fields whose Structs have their own columns to the prefix of those columns. Use `outer.inner`
        for a Struct inside another.
        `leave_out` lists fields that are stored elsewhere or written by hand."""
        self.name = name
        self._plan = _Plan(of, "", embed or {}, leave_out)
        leaves = self._plan.leaves()
        self.columns: Final = tuple(column for column, _, _ in leaves)
        paths = [path for _, path, _ in leaves]
        self._values: _Convert = (
            attrgetter(*paths) if len(paths) > 1 else lambda value: (getattr(value, paths[0]),)
        )
        self._encoders = [(n, kind.encode) for n, (_, _, kind) in enumerate(leaves) if kind.encode]
        self.names = ", ".join(self.columns)
        self.select: Final = f"SELECT {self.names} FROM {name}"
        self.insert: Final = self.insert_with()

    def names_in(self, alias: str) -> str:
        """The columns, for a SELECT that joins this table as `alias`."""
        return ", ".join(f"{alias}.{each}" for each in self.columns)

    def insert_with(self, *more: str) -> str:
        """An INSERT with more columns, in front, that no field has."""
        return insert_into(self.name, *more, *self.columns)

    def upsert(self, *key: str, change: tuple[str, ...] = ()) -> str:
        """An INSERT that replaces the row with the same key, or only the columns in `change`."""
        changed = change or tuple(each for each in self.columns if each not in key)
        sets = ", ".join(f"{each} = excluded.{each}" for each in changed)
        return f"{self.insert} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sets}"

    def add(self, tx: Transaction, value: T, /, **more: object) -> None:
        """`more` has the columns that no field has."""
        tx.run_many(self.insert_with(*more), [(*more.values(), *self.row(value))])

    def row(self, value: T) -> Row:
        values = self._values(value)
        if not self._encoders:
            return values  # type: ignore[no-any-return]
        encoded = list(values)
        for index, encode in self._encoders:
            encoded[index] = encode(encoded[index])
        return tuple(encoded)

    def value(self, row: Row, **extra: object) -> T:
        """`extra` has the fields that were left out."""
        return self._made(*row, **extra)  # type: ignore[no-any-return]

    def all(self, tx: Transaction, rest: str, /, **values: object) -> tuple[T, ...]:
        """The values that a SELECT finds. `rest` is what follows the columns and the table: WHERE, ORDER BY, LIMIT."""
        return tuple(map(self.value, tx.all(f"{self.select} {rest}", **values)))

    def one(self, tx: Transaction, rest: str, /, **values: object) -> T | None:
        row = tx.one(f"{self.select} {rest}", **values)
        return self.value(row) if row else None

    def lock(self, tx: Transaction, rest: str, /, **values: object) -> T | None:
        """Like `one`. Nobody else can change or lock the row until the transaction ends."""
        rows = tx.lock(f"{self.select} {rest}", **values)
        return self.value(rows[0]) if rows else None

    def lock_shared(self, tx: Transaction, rest: str, /, **values: object) -> T | None:
        """Like `lock`, but several transactions can hold it."""
        rows = tx.lock_shared(f"{self.select} {rest}", **values)
        return self.value(rows[0]) if rows else None

    @cached_property
    def _made(self) -> Callable[..., Any]:
        return self._plan.maker()


class _Kind(msgspec.Struct, frozen=True):
    """How to convert one column. None: unchanged."""

    encode: _Convert | None = None
    decode: _Convert | None = None


class _Plan:
    """The fields of one Struct: columns, and embedded Structs with their own columns."""

    def __init__(
        self, of: type[Any], prefix: str, embed: Mapping[str, str], leave_out: tuple[str, ...] = ()
    ) -> None:
        self._of = of
        self._parts: list[tuple[str, str, _Kind | _Plan]] = []
        for field in msgspec.structs.fields(of):
            if field.name in leave_out:
                continue
            if field.name in embed:
                inside = f"{field.name}."
                inner = {
                    name.removeprefix(inside): each for name, each in embed.items() if name.startswith(inside)
                }
                out = tuple(name.removeprefix(inside) for name in leave_out if name.startswith(inside))
                self._parts.append(
                    (field.name, "", _Plan(field.type, prefix + embed[field.name], inner, out))
                )
            else:
                suffix = "_us" if _bare(field.type)[0] is datetime else ""
                self._parts.append((field.name, f"{prefix}{field.name}{suffix}", _kind_of(field.type)))

    def leaves(self, path: str = "") -> list[tuple[str, str, _Kind]]:
        found: list[tuple[str, str, _Kind]] = []
        for name, column, part in self._parts:
            if isinstance(part, _Plan):
                found += part.leaves(f"{path}{name}.")
            else:
                found.append((column, path + name, part))
        return found

    def maker(self) -> Callable[..., Any]:
        """A function from the columns to a value: one expression, `Of(id=c0, at=decode_c1(c1), …)`. Listings decode
        tens of thousands of rows, and a loop over the columns takes half as long again or more."""
        names: dict[str, Any] = {}
        columns = [f"c{n}" for n in range(len(self.leaves()))]
        made = self._expression(names, iter(columns)).removesuffix(")")
        return eval(f"lambda {', '.join(columns)}, **extra: {made}, **extra)", names)  # type: ignore[no-any-return]  # noqa: S307

    def _expression(self, names: dict[str, Any], columns: Iterator[str]) -> str:
        """The text of the call. It has only names of fields, and those that are put into `names`."""
        given = []
        for field, _, part in self._parts:
            if isinstance(part, _Plan):
                given.append(f"{field}={part._expression(names, columns)}")
                continue
            column = next(columns)
            names[f"decode_{column}"] = part.decode
            given.append(f"{field}=decode_{column}({column})" if part.decode else f"{field}={column}")
        of = f"of{len(names)}"
        names[of] = self._of
        return f"{of}({', '.join(given)})"


def _bare(annotation: Any) -> tuple[Any, bool]:
    """A field's type without NewType and `| None`, and whether it may be None."""
    is_optional = False
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [each for each in get_args(annotation) if each is not type(None)]
        is_optional = len(kinds) < len(get_args(annotation))
        annotation = kinds[0] if len(kinds) == 1 else annotation
    while isinstance(annotation, NewType):
        annotation = annotation.__supertype__
    return annotation, is_optional


def _kind_of(annotation: Any) -> _Kind:
    bare, is_optional = _bare(annotation)
    if bare in (str, int, float) or get_origin(bare) is Literal:
        return _Kind()
    if bare is bool:
        return _Kind(_unless_none(int), _unless_none(bool)) if is_optional else _Kind(int, bool)
    if bare is datetime:
        if is_optional:
            return _Kind(_unless_none(microseconds), _unless_none(at_microseconds))
        return _Kind(microseconds, at_microseconds)
    if isinstance(bare, type) and issubclass(bare, Enum):
        if is_optional:
            return _Kind(
                lambda value: value.value if value else "", lambda text: bare(text) if text else None
            )
        return _Kind(lambda value: value.value, bare)
    return _json(bare, is_optional)


def _json(bare: Any, is_optional: bool) -> _Kind:
    decode = msgspec.json.Decoder(bare).decode

    def encoded(value: Any) -> str:
        return msgspec.json.encode(value, order="deterministic").decode()

    if is_optional:
        return _Kind(
            lambda value: "" if value is None else encoded(value), lambda text: decode(text) if text else None
        )
    return _Kind(encoded, decode)


def _unless_none(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else convert(value)


def insert_into(table: str, *columns: str) -> str:
    """The text of an INSERT."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(f':{each}' for each in columns)})"


def add_row(tx: Transaction, table: str, /, **values: object) -> None:
    """Add a row that no Struct describes."""
    tx.run(insert_into(table, *values), **values)


def add_missing_row(tx: Transaction, table: str, /, **values: object) -> bool:
    """Add a row unless its key exists. Return whether it was added."""
    return tx.run(f"{insert_into(table, *values)} ON CONFLICT DO NOTHING", **values) == 1


def put_row(tx: Transaction, table: str, key: str, /, **values: object) -> None:
    """Add a row, or replace the one with the same key. `key` has the names of its columns, separated by spaces."""
    keys = key.split()
    sets = ", ".join(f"{each} = excluded.{each}" for each in values if each not in keys)
    tx.run(f"{insert_into(table, *values)} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {sets}", **values)


def number(tx: Transaction, sql: str, /, **values: object) -> int:
    """The number that a SELECT finds, such as a COUNT. 0 if it finds no row."""
    row = tx.one(sql, **values)
    return int(row[0]) if row else 0


def among(words: Collection[StrEnum]) -> str:
    """The list of an `IN`, from a named set of states. It has the order of the enum, because SQLite uses a partial
    index only if its condition is the same text."""
    kind = type(next(iter(words)))
    listed = ", ".join(f"'{each}'" for each in kind if each in words)
    return f"({listed})"


def in_list(ids: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The placeholders of an `IN (…)` and their values, padded to a few lengths so that few statements are prepared."""
    length = next((size for size in (1, 21, 51, 201) if size >= len(ids)), len(ids))
    padded = [*ids, *([ids[-1]] * (length - len(ids)))]
    return ", ".join(f":i{n}" for n in range(length)), {f"i{n}": id for n, id in enumerate(padded)}
