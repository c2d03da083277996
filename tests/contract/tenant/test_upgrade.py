"""Upgrading a database without organisation quotas: tenants get a limit on projects, the operator gets none."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

from tests.contract.storage.raw import opened_as_it_is

import teraflock.storage.migrate
from teraflock.base.clock import FixedClock
from teraflock.storage.migrate import migrate
from teraflock.tenant.model import OrganisationId, OrganisationQuota
from teraflock.tenant.quota.store import name_and_quota

CLOCK = FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
BEFORE = 8


def test_existing_organisations_get_a_limit_on_projects(database_address: str, tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    shutil.copytree(Path(teraflock.storage.migrate.__file__).parent / "migrations", folder)
    later = [path for path in folder.glob("*.sql") if int(path.name[:4]) > BEFORE]
    texts = {path: path.read_text() for path in later}
    for path in later:
        path.unlink()
    database = opened_as_it_is(database_address)
    try:
        assert migrate(database, CLOCK, folder=str(folder)) == BEFORE
        for id, is_operator in (("org_house", 1), ("org_firm", 0)):
            database.write(
                lambda tx, id=id: tx.run(  # type: ignore[misc]
                    "INSERT INTO organisation (id, name, created_at_us) VALUES (:id, :id, 0)", id=id
                )
            )
            database.write(
                lambda tx, id=id, is_operator=is_operator: tx.run(  # type: ignore[misc]
                    "INSERT INTO member (id, organisation_id, name, is_operator, created_at_us)"
                    " VALUES (:member, :id, 'x', :is_operator, 0)",
                    member=f"mem_{id}",
                    id=id,
                    is_operator=is_operator,
                )
            )
        for path, text in texts.items():
            path.write_text(text)
        assert migrate(database, CLOCK, folder=str(folder)) == len(later)
        with database.read() as tx:
            assert name_and_quota(tx, OrganisationId("org_house"))[1] == OrganisationQuota()
            assert name_and_quota(tx, OrganisationId("org_firm"))[1] == OrganisationQuota(projects=20)
    finally:
        database.close()
