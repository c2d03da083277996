"""What the wheel holds: the package and nothing of the workshop around it."""

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]


def test_the_wheel_holds_the_package_alone() -> None:
    included = [each.distribution_path for each in WheelBuilder(str(ROOT)).recurse_included_files()]
    assert "teraflock/cli/main.py" in included
    assert [path for path in included if not path.startswith("teraflock/")] == []


def test_the_licence_is_the_one_that_the_package_names() -> None:
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License" in text
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text("utf-8")
