"""Archives of unused images are removed; the archive of the base image is kept."""

from pathlib import Path

from teraflock.drivers.lxd.images import forget_archive

DIGEST = "0123456789abcdef0123"


def test_archive_is_removed_with_its_last_image_except_base(tmp_path: Path) -> None:
    names = (
        "pytorch-0123456789abcdef.tar.zst",
        "base-0123456789abcdef.tar.zst",
        "pytorch-ffffffffffffffff.tar.zst",
    )
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    forget_archive(tmp_path, "")
    assert len(list(tmp_path.iterdir())) == 3
    forget_archive(tmp_path, DIGEST)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(names[1:])
