"""All SQL for images."""

from typing import Final

from teraflock.image.model import IMAGE_MOVES, Image, ImageState
from teraflock.storage.database import Transaction
from teraflock.storage.life_cycle import LifeCycle
from teraflock.storage.table import Table
from teraflock.tenant.model import OrganisationId, ProjectId
from teraflock.tenant.project.store import IN_ORGANISATION

_IMAGE: Final = Table("image", Image)
STATES: Final = LifeCycle("image", IMAGE_MOVES)

BUILT_BYTES_MAX: Final = 8 << 30
"""More than any of our recipes needs. The largest image so far has 3.1 GB."""


def page(tx: Transaction, project: ProjectId, *, after: str, limit: int) -> tuple[Image, ...]:
    """The project's own images and those for all projects."""
    return _IMAGE.all(
        tx,
        "WHERE project_id IN ('', :project) AND id > :after ORDER BY id LIMIT :limit",
        project=project,
        after=after,
        limit=limit,
    )


_FIND: Final = (
    f"{_IMAGE.select} WHERE project_id IN ('', :project) AND (id = :ref OR name = :ref)"
    " ORDER BY project_id DESC"
)


def find(tx: Transaction, project: str, ref: str) -> Image | None:
    """Find an image by id or name. A project's own image comes before one for all projects."""
    row = tx.one(_FIND, project=project, ref=ref)
    return _IMAGE.value(row) if row else None


def find_to_use(tx: Transaction, project: str, ref: str) -> Image | None:
    """Like `find`, and nobody can remove the image until the transaction ends."""
    rows = tx.lock_shared(_FIND, project=project, ref=ref)
    return _IMAGE.value(rows[0]) if rows else None


def find_to_remove(tx: Transaction, project: str, ref: str) -> Image | None:
    """Like `find`, and nobody can start to use the image until the transaction ends."""
    rows = tx.lock(_FIND, project=project, ref=ref)
    return _IMAGE.value(rows[0]) if rows else None


def names(tx: Transaction, project: str) -> list[str]:
    rows = tx.all("SELECT name FROM image WHERE project_id IN ('', :project) ORDER BY name", project=project)
    return [row[0] for row in rows]


def insert(tx: Transaction, image: Image) -> None:
    _IMAGE.add(tx, image)


def move(tx: Transaction, id: str, state: ImageState, *, problem: str = "", size_bytes: int = 0) -> bool:
    """False: the image cannot get this state any more, or it does not exist."""
    columns = {"problem": problem, "size_bytes": size_bytes}
    return STATES.move(tx, state, "id = :id", columns=columns, id=id) == 1


def to_measure_in_all_projects(tx: Transaction) -> tuple[Image, ...]:
    """Images made from instances whose size is not known yet."""
    return _IMAGE.all(tx, "WHERE state = 'ready' AND recipe = '' AND sequence = 0 ORDER BY id")


def by_id_in_all_projects(tx: Transaction, id: str) -> Image | None:
    return _IMAGE.one(tx, "WHERE id = :id", id=id)


def set_metered(tx: Transaction, id: str, size_bytes: int, sequence: int) -> None:
    tx.run(
        "UPDATE image SET size_bytes = :size, sequence = :sequence WHERE id = :id",
        size=size_bytes,
        sequence=sequence,
        id=id,
    )


def fail_unmade(tx: Transaction, instance_id: str, problem: str) -> None:
    """Fail the images that were waiting for an instance whose disk is now gone."""
    STATES.move(
        tx, ImageState.FAILED, "source_instance_id = :id", columns={"problem": problem}, id=instance_id
    )


def remove(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM image WHERE id = :id", id=id)


def delete_all_of_organisation(tx: Transaction, id: OrganisationId) -> None:
    """Ask the loop to remove every image of the organisation's projects."""
    STATES.move(tx, ImageState.DELETING, f"project_id IN ({IN_ORGANISATION})", id=id)


def made_of_instances(tx: Transaction) -> list[str]:
    """The names of images made from instances, which no recipe can build again."""
    rows = tx.all("SELECT name FROM image WHERE recipe = '' AND state = 'ready' ORDER BY id")
    return [row[0] for row in rows]


def rebuild_all(tx: Transaction) -> None:
    """Let the loop build every image from its recipe again. Engines that have an image do nothing."""
    STATES.move(tx, ImageState.WAITING, "recipe <> '' AND state = 'ready'")


def users(tx: Transaction, id: str) -> int:
    """The number of existing instances that use the image."""
    row = tx.one(
        "SELECT COUNT(*) FROM instance WHERE phase <> 'gone' AND spec LIKE :mark", mark=f'%"image_id":"{id}"%'
    )
    return int(row[0]) if row else 0


def kept_bytes(tx: Transaction, project: ProjectId) -> int:
    """The size of a project's own images. An unfinished image counts with its maximum size."""
    return _kept_bytes(tx, "m.project_id = :id", project)


def kept_bytes_of_organisation(tx: Transaction, organisation: OrganisationId) -> int:
    return _kept_bytes(tx, f"m.project_id IN ({IN_ORGANISATION})", organisation)


def _kept_bytes(tx: Transaction, where: str, id: str) -> int:
    row = tx.one(
        "SELECT COALESCE(SUM(CASE WHEN m.state <> 'waiting' OR m.size_bytes > 0 THEN m.size_bytes"
        " WHEN m.recipe <> '' THEN :built ELSE COALESCE(i.disk_bytes, 0) END), 0)"
        f" FROM image m LEFT JOIN instance i ON i.id = m.source_instance_id WHERE {where}",
        built=BUILT_BYTES_MAX,
        id=id,
    )
    return int(row[0]) if row else 0


def to_build_in_all_projects(tx: Transaction) -> tuple[Image, ...]:
    return _IMAGE.all(tx, "WHERE (state = 'waiting' AND recipe <> '') OR state = 'deleting' ORDER BY id")


def built_in_all_projects(tx: Transaction) -> tuple[Image, ...]:
    """Images of recipes that every site should have."""
    return _IMAGE.all(tx, "WHERE state = 'ready' AND recipe <> '' ORDER BY id")
