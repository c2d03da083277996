"""Limits on connections always hold, and the connection that has been idle longest closes first."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.api.addresses import networks_of, source_of
from teraflock.app.connections import Connections, OpenConnection, connections_most
from teraflock.base.errors import BadInput

ADDRESSES = ["10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"]


@given(
    most=st.integers(1, 10),
    each=st.integers(1, 6),
    steps=st.lists(
        st.tuples(st.sampled_from(["enter", "leave", "mark_busy", "mark_idle"]), st.sampled_from(ADDRESSES)),
        max_size=80,
    ),
)
def test_limits_hold_and_only_idle_connections_close(
    most: int, each: int, steps: list[tuple[str, str]]
) -> None:
    connections = Connections(most, each)
    inside: dict[OpenConnection, bool] = {}
    """Whether each connection is idle."""
    gone: list[OpenConnection] = []

    def ended(number: list[OpenConnection]) -> None:
        assert inside.pop(number[0]), "a connection with a request in progress is not closed"

    for what, address in steps:
        mine = [mate for mate in inside if mate.source == source_of(address)]
        if what == "enter":
            handle: list[OpenConnection] = []
            entered = connections.enter(address, partial(ended, handle), gone.append)
            if entered is None:
                of_source = len(mine) >= each and not any(inside[mate] for mate in mine)
                of_all = len(inside) >= most and not any(inside.values())
                assert of_source or of_all
            else:
                handle.append(entered)
                inside[entered] = True
        elif mine and what == "leave":
            connections.leave(mine[0])
            del inside[mine[0]]
        elif mine:
            getattr(connections, what)(mine[0])
            inside[mine[0]] = what == "mark_idle"
        assert len(connections) == len(inside) <= most


def test_the_longest_idle_connection_closes_first() -> None:
    gone: list[OpenConnection] = []
    connections = Connections(2, 2)
    first = connections.enter("10.0.0.1", list, gone.append)
    second = connections.enter("10.0.0.2", list, gone.append)
    assert first
    assert second
    connections.mark_busy(first)
    assert connections.enter("10.0.0.3", list, gone.append)
    assert gone == [second]
    connections.leave(second)  # its end is reported later, and counts once
    assert len(connections) == 2


def test_a_source_at_its_limit_closes_only_its_own_connections() -> None:
    gone: list[OpenConnection] = []
    connections = Connections(100, 2)
    other = connections.enter("10.0.0.2", list, gone.append)
    for _ in range(10):
        assert connections.enter("10.0.0.1", list, gone.append)
    assert len(gone) == 8
    assert other not in gone


def test_a_trusted_proxy_has_no_limit_per_source() -> None:
    gone: list[OpenConnection] = []
    connections = Connections(100, 2, networks_of("10.0.0.1, 10.9.0.0/16"))
    for address in ("10.0.0.1", "10.9.8.7") * 10:
        assert connections.enter(address, list, gone.append)
    assert gone == []


def test_sources_of_addresses() -> None:
    assert source_of("10.0.0.1") == source_of("::ffff:10.0.0.1") == "10.0.0.1"
    assert source_of("2001:db8::1") == source_of("2001:db8::ffff:2%eth0") == "2001:db8::/64"
    assert source_of("2001:db8:0:1::1") != source_of("2001:db8::1")
    assert source_of("") == ""


@pytest.mark.parametrize("text", ["proxy.example.org", "10.0.0.1/8", "300.0.0.1"])
def test_invalid_proxies_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="trusted_proxies"):
        networks_of(text)


@given(wanted=st.integers(16, 100_000), files=st.integers(64, 1 << 20), execs=st.integers(1, 1000))
def test_open_files_are_reserved_for_the_loops(wanted: int, files: int, execs: int) -> None:
    most = connections_most(wanted, files, execs=execs, threads=16)
    assert 0 < most <= wanted
    assert most <= files // 4 or most <= files - 6 * execs - 128
    assert files - most >= files * 3 // 4 or files - most >= 128
