"""The wheel contains only the package."""

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]


def test_the_wheel_contains_only_the_package() -> None:
    included = [each.distribution_path for each in WheelBuilder(str(ROOT)).recurse_included_files()]
    assert "teraflock/cli/main.py" in included
    for name in (
        "templates/base.html",
        "static/console.css",
        "static/vendor/htmx/LICENSE",
        "catalogs/zh.json",
    ):
        assert f"teraflock/console/{name}" in included
    assert [path for path in included if not path.startswith("teraflock/")] == []


def test_the_licence_file_matches_the_package_metadata() -> None:
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License" in text
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text("utf-8")
