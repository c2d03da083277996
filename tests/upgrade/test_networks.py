"""The network number and the attached ACL of a project become networks and attachments, on both databases."""

import shutil
from pathlib import Path

from teraflock.base.clock import SystemClock
from teraflock.network import store
from teraflock.network.acl import store as acls
from teraflock.storage.database import Transaction
from teraflock.storage.migrate import MIGRATIONS, migrate
from teraflock.storage.open import open_as_it_is
from teraflock.tenant.model import ProjectId

BEFORE = 20
CLOCK = SystemClock()


def test_projects_keep_their_addresses_and_acls(database_address: str, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    for path in sorted(Path(MIGRATIONS).glob("*.sql"))[:BEFORE]:
        shutil.copy(path, folder)
    database = open_as_it_is(database_address)
    try:
        assert migrate(database, CLOCK, folder=str(folder)) == BEFORE
        database.write(_fill)
        migrate(database, CLOCK)
        with database.read() as tx:
            (layout,) = store.layouts(tx, ProjectId("prj_used"))
            network = layout.network
            assert (network.name, network.number, str(network.cidr)) == ("default", 17, "10.129.16.0/20")
            assert network.engine_key == "prj_used", "engines know the bridge by the project"
            assert acls.attachments(tx, ProjectId("prj_used"), "default") == {"default": "guard"}
            assert acls.borders_in_all_projects(tx) == {"10.129.16.0/20": ()}
            assert store.layouts(tx, ProjectId("prj_new")) == ()
            assert acls.attachments(tx, ProjectId("prj_new"), "default") == {"default": "guard"}
            ((gone, with_project),) = store.removed_in_all_projects(tx)
            assert (gone.project_id, gone.number, with_project) == ("prj_gone", 18, True)
    finally:
        database.close()


def _fill(tx: Transaction) -> None:
    tx.run("INSERT INTO organisation (id, name, created_at_us) VALUES ('org_1', 'one', 1)")
    for name, number, removed in (("used", 17, None), ("new", -1, None), ("gone", 18, 5)):
        tx.run(
            "INSERT INTO project (id, organisation_id, name, quota, network_number, created_at_us, removed_at_us)"
            " VALUES (:id, 'org_1', :name, '{}', :number, 1, :removed)",
            id=f"prj_{name}",
            name=name,
            number=number,
            removed=removed,
        )
    for name in ("used", "new"):
        tx.run(
            "INSERT INTO acl (id, project_id, name, attached, created_at_us)"
            " VALUES (:id, :project, 'guard', 1, 1), (:other, :project, 'spare', 0, 1)",
            id=f"acl_{name}",
            other=f"acl_{name}_spare",
            project=f"prj_{name}",
        )
