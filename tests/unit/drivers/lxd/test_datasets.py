"""A dataset that arrives on a host leaves room for the system of the host."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from teraflock.drivers.lxd.datasets import FREE_BYTES_MIN, LxdDatasets
from teraflock.instance.engine_errors import NoRoom


def test_full_disk_stops_an_arriving_dataset_and_is_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = FREE_BYTES_MIN + 10
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    kept = LxdDatasets(cast("Any", None), tmp_path / "datasets")
    kept.receive("dat_1", 0, bytes(10))
    assert [each.stat().st_size for each in (tmp_path / "datasets").iterdir()] == [10]
    free = FREE_BYTES_MIN
    with pytest.raises(NoRoom):
        kept.receive("dat_1", 10, b"x")
    assert list((tmp_path / "datasets").iterdir()) == []
