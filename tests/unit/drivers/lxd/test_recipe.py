"""Recipes, and the files that the builder writes from them."""

import stat
from pathlib import Path

import msgspec
import pytest

from teraflock.base.errors import UnknownName
from teraflock.drivers.lxd import build
from teraflock.image import recipe
from teraflock.image.recipe import Recipe

ALL = recipe.known()


def test_documented_recipes_exist() -> None:
    assert set(ALL) >= {"base", "jupyter", "pytorch", "tensorflow"}


@pytest.mark.parametrize("name", ALL)
def test_recipe_is_complete_and_its_units_exist(name: str, tmp_path: Path) -> None:
    whole = recipe.read(name)
    assert whole.suite
    assert "openssh-server" in whole.packages
    build.write_files(whole, tmp_path)
    for unit in whole.enabled:
        wants = (tmp_path / "etc/systemd/system").glob("*.wants/*")
        links = [path for path in wants if path.name == unit]
        assert len(links) == 1, f"{unit} must be enabled exactly once"
        assert (tmp_path / str(links[0].readlink()).lstrip("/")).is_file()
    for unit in whole.masked:
        assert (tmp_path / "etc/systemd/system" / unit).readlink() == Path("/dev/null")
    assert not set(whole.masked) & set(whole.enabled)


def test_only_root_can_read_secrets(tmp_path: Path) -> None:
    build.write_files(recipe.read("base"), tmp_path)
    for name in ("etc/ssh/ssh_host_ed25519_key", "root/.ssh/authorized_keys", "etc/teraflock/jupyter-token"):
        path = tmp_path / name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_bytes() == b"", "the engine fills it for each guest"
    assert stat.S_IMODE((tmp_path / "root/.ssh").stat().st_mode) == 0o700


def test_programs_in_recipes_are_valid() -> None:
    for file in recipe.read("base").file:
        if file.mode == 0o755:
            assert file.content.lstrip("\n").startswith("#!/usr/bin/python3\n")
            compile(file.content, file.path, "exec")


def test_metadata_names_every_template_and_its_file(tmp_path: Path) -> None:
    whole = recipe.read("base")
    build.write_metadata(whole, tmp_path, 1)
    metadata = msgspec.json.decode((tmp_path / "metadata.yaml").read_bytes())
    assert set(metadata["templates"]) == {template.path for template in whole.template}
    for entry in metadata["templates"].values():
        assert (tmp_path / "templates" / entry["template"]).is_file()


def test_digest_changes_with_every_part_of_the_image() -> None:
    whole = recipe.read("jupyter")
    changed: list[Recipe] = [
        msgspec.structs.replace(whole, packages=(*whole.packages, "vim")),
        msgspec.structs.replace(whole, masked=whole.masked[1:]),
        msgspec.structs.replace(whole, file=whole.file[1:]),
        msgspec.structs.replace(whole, template=whole.template[1:]),
        msgspec.structs.replace(whole, python=None),
    ]
    digests = {recipe.digest(each) for each in (whole, *changed)}
    assert len(digests) == len(changed) + 1
    assert recipe.digest(recipe.read("jupyter")) == recipe.digest(whole)


def test_extended_recipe_comes_first() -> None:
    base, jupyter = recipe.read("base"), recipe.read("jupyter")
    assert jupyter.file[: len(base.file)] == base.file
    torch = recipe.read("pytorch").python
    assert torch is not None
    assert jupyter.python is not None
    assert torch.packages[: len(jupyter.python.packages)] == jupyter.python.packages


def test_unknown_recipe_error_lists_known_ones() -> None:
    with pytest.raises(UnknownName) as told:
        recipe.read("jupiter")
    assert "jupyter" in told.value.hint
    with pytest.raises(UnknownName):
        recipe.read("../recipes/base")


def test_own_apt_sources_are_used_if_they_have_the_suite(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("deb http://mirror.example/ubuntu noble main\n")
    assert build.apt_sources("bookworm", tmp_path) == []
    debian = tmp_path / "sources.list.d" / "debian.sources"
    debian.write_text("Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n")
    (tmp_path / "sources.list.d" / "old.list.disabled").write_text("deb http://x bookworm main\n")
    assert build.apt_sources("bookworm", tmp_path) == [str(debian)]


def test_existing_image_is_not_built_again(tmp_path: Path) -> None:
    whole = recipe.read("base")
    target = tmp_path / f"base-{recipe.digest(whole)[:16]}.tar.zst"
    target.write_bytes(b"built before")
    assert build.build(whole, tmp_path, created_at=1) == target
    assert target.read_bytes() == b"built before"
