"""Which walks of a rented machine's life are fast. All clouds share one engine, so each point is walked with one cloud
in `make test`, and with the others in `make test-long`."""

from zlib import crc32

import pytest

CLOUD = "ground"
"""The fixture whose parameter is the cloud."""
WALKS = ("test_a_dead_worker_doubles_and_leaks_nothing", "test_lost_messages_double_and_leak_nothing")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    cases = [
        item
        for item in items
        if isinstance(item, pytest.Function) and item.originalname in WALKS and CLOUD in params(item)
    ]
    clouds = sorted({str(params(item)[CLOUD]) for item in cases})
    for item in cases:
        point = sorted((name, str(value)) for name, value in params(item).items() if name != CLOUD)
        if clouds[crc32(repr(point).encode()) % len(clouds)] != params(item)[CLOUD]:
            item.add_marker(pytest.mark.long("another cloud walks this point"))


def params(item: pytest.Function) -> dict[str, object]:
    return item.callspec.params
