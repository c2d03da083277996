"""Filtered lists: the SQL on both databases gives the same pages as a filter in plain Python."""

from fnmatch import fnmatchcase

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.faults.installation import Installation

from teraflock.instance import store
from teraflock.instance.model import Instance, InstanceFilter
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.storage.database import Transaction

SMALL = ShapeWish(vcpus=1, ram_bytes=64 << 20, disk_bytes=512 << 20)
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"team": "red"},
    {"team": "blue"},
    {"team": "red", "run": "7"},
    {"run": "%"},
    {"run": "a=b"},
)
NAMES = ("web-1", "web-2", "web", "job", "job-web", "w")


def furnish(installation: Installation) -> None:
    actor, project = installation.tenant.actor, installation.tenant.project
    for name, labels in zip(NAMES, LABELS, strict=True):
        installation.service.launch(actor, project, Order(name=name, shape=SMALL, labels=labels))
    installation.settle()
    installation.service.stop(actor, project, "web-2")
    installation.service.delete(actor, project, "job")
    installation.service.label(actor, project, "w", {"team": "red", "run": None})
    installation.settle()


def matches(instance: Instance, only: InstanceFilter, *, gone: bool) -> bool:
    if instance.phase == Phase.GONE and not (gone or Phase.GONE in only.phases):
        return False
    return (
        (not only.phases or instance.phase in only.phases)
        and all(instance.labels.get(key) == value for key, value in only.labels)
        and (not only.name or fnmatchcase(instance.name, only.name))
    )


FILTERS = st.builds(
    InstanceFilter,
    phases=st.lists(st.sampled_from([Phase.RUNNING, Phase.STOPPED, Phase.GONE]), max_size=2).map(tuple),
    labels=st.lists(
        st.sampled_from([("team", "red"), ("team", "blue"), ("run", "7"), ("run", "%"), ("run", "a=b")]),
        max_size=2,
    ).map(tuple),
    name=st.sampled_from(["", "web", "web-*", "*web*", "?", "w*", "j?b", "*-?", "*"]),
)


def test_filter_in_sql_equals_filter_in_python(installation: Installation) -> None:
    furnish(installation)
    project = installation.tenant.project.id
    every = [view.instance for view in installation.service.page(project, limit=100, gone=True)]
    assert len(every) == len(NAMES)

    @given(FILTERS, st.booleans(), st.integers(1, 4))
    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    def hold(only: InstanceFilter, gone: bool, limit: int) -> None:
        found: list[Instance] = []
        after = ""
        while page := installation.service.page(project, after=after, limit=limit, gone=gone, only=only):
            found += [view.instance for view in page]
            after = page[-1].instance.id
        assert found == [each for each in every if matches(each, only, gone=gone)]

    hold()


def test_labels_of_older_rows_are_found_after_an_upgrade(installation: Installation) -> None:
    """Rows from before migration 12 have their labels only in `spec`."""
    furnish(installation)
    project = installation.tenant.project.id
    views = installation.service.page(project, limit=100, gone=True)

    def as_before(tx: Transaction) -> None:
        for view in views:
            instance = view.instance
            spec = msgspec.to_builtins(instance.spec) | {"labels": dict(instance.labels)}
            tx.run(
                "UPDATE instance SET spec = :spec, labels = '' WHERE id = :id",
                spec=msgspec.json.encode(spec).decode(),
                id=instance.id,
            )
        tx.run("DELETE FROM instance_label")

    before = {
        view.instance.id: dict(view.instance.labels) for view in installation.service.page(project, limit=100)
    }
    installation.database.write(as_before)
    assert installation.database.write(store.move_labels) == len(NAMES)
    assert installation.database.write(store.move_labels) == 0
    red = installation.service.page(project, limit=100, only=InstanceFilter(labels=(("team", "red"),)))
    assert {view.instance.name for view in red} == {"web-2", "w"}
    after = {
        view.instance.id: dict(view.instance.labels) for view in installation.service.page(project, limit=100)
    }
    assert after == before
