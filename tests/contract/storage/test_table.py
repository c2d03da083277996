"""The row codec returns every kind of field unchanged, on both databases."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teraflock.base.size import Size
from teraflock.storage.database import Database, Transaction
from teraflock.storage.table import Table


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    size: Size = Size()
    note: str = ""


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    at: datetime
    until: datetime | None
    is_on: bool
    maybe: bool | None
    count: int | None
    colour: Colour
    other: Colour | None
    labels: Mapping[str, str]
    inner: Inner
    plain: Size | None
    levels: tuple[int, ...] = ()
    elsewhere: str = ""


THING = Table("thing", Thing, embed={"inner": "in_", "inner.size": "size_"}, leave_out=("elsewhere",))
CREATE = (
    "CREATE TABLE thing (id TEXT PRIMARY KEY, at_us BIGINT NOT NULL, until_us BIGINT, is_on BIGINT NOT NULL,"
    " maybe BIGINT, count BIGINT, colour TEXT NOT NULL, other TEXT NOT NULL, labels TEXT NOT NULL,"
    " in_size_gpu TEXT NOT NULL, in_size_gpus BIGINT NOT NULL, in_size_vcpus BIGINT NOT NULL,"
    " in_size_ram_bytes BIGINT NOT NULL, in_size_disk_bytes BIGINT NOT NULL, in_note TEXT NOT NULL,"
    " plain TEXT NOT NULL, levels TEXT NOT NULL)"
)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
numbers = st.integers(0, 1 << 60)
times = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
sizes = st.builds(Size, gpu=texts, gpus=numbers, vcpus=numbers, ram_bytes=numbers, disk_bytes=numbers)
things = st.builds(
    Thing,
    id=texts,
    at=times,
    until=st.none() | times,
    is_on=st.booleans(),
    maybe=st.none() | st.booleans(),
    count=st.none() | numbers,
    colour=st.sampled_from(Colour),
    other=st.none() | st.sampled_from(Colour),
    labels=st.dictionaries(texts, texts, max_size=3),
    inner=st.builds(Inner, size=sizes, note=texts),
    plain=st.none() | sizes,
    levels=st.lists(numbers, max_size=3).map(tuple),
)


@given(things)
def test_encoding_and_decoding_a_row_returns_the_value(thing: Thing) -> None:
    row = THING.row(thing)
    assert len(row) == len(THING.columns)
    assert not any(isinstance(each, bool) for each in row), (
        "PostgreSQL does not accept a boolean for a BIGINT"
    )
    assert THING.value(row) == thing
    assert THING.value(row, elsewhere="here") == msgspec.structs.replace(thing, elsewhere="here")


@given(things, things)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_stored_value_is_read_back_unchanged(database: Database, thing: Thing, other: Thing) -> None:
    changed = msgspec.structs.replace(other, id=thing.id)

    def work(tx: Transaction) -> None:
        tx.run("DROP TABLE IF EXISTS thing")
        tx.run(CREATE)
        THING.add(tx, thing)

    database.write(work)
    with database.read() as tx:
        assert [THING.value(row) for row in tx.all(THING.select)] == [thing]
        assert [THING.value(row) for row in tx.all(f"SELECT {THING.names_in('t')} FROM thing t")] == [thing]
    database.write(
        lambda tx: tx.run_many(THING.upsert("id", change=("count", "levels")), [THING.row(changed)])
    )
    with database.read() as tx:
        found = [THING.value(row) for row in tx.all(THING.select)]
    assert found == [msgspec.structs.replace(thing, count=changed.count, levels=changed.levels)]
    database.write(lambda tx: tx.run_many(THING.upsert("id"), [THING.row(changed)]))
    with database.read() as tx:
        assert [THING.value(row) for row in tx.all(THING.select)] == [changed]
