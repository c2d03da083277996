"""Datasets: the list, and their deletion. They are pushed from the command line."""

from typing import Final

from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.volumes import READ, WRITE, storage_page
from teraflock.console.paging import Sliced, sliced
from teraflock.wire.dataset import DatasetAnswer

pages = Pages()
ALL: Final = "/projects/{project}/datasets"
ONE: Final = f"{ALL}/{{dataset}}"


@pages.get(ALL, **READ)
def list_datasets(call: PageCall) -> Answer:
    """The datasets of a project."""
    return storage_page(call, "datasets", "storage/datasets.html", datasets=_listed(call))


@pages.get(f"{ALL}-rows", **READ)
def list_dataset_rows(call: PageCall) -> Answer:
    """The rows of the list, requested again while one is uploaded."""
    return call.part("storage/dataset_rows.html", datasets=_listed(call))


@pages.get(f"{ONE}/delete", **WRITE)
def confirm_dataset_delete(call: PageCall) -> Answer:
    """Say what is lost, before a dataset is deleted."""
    found = call.client.datasets.get(call.path["dataset"])
    return call.page("storage/delete_dataset.html", section="storage", dataset=found)


@pages.post(f"{ONE}/delete", on_error=confirm_dataset_delete, **WRITE)
def delete_dataset(call: PageCall) -> Answer:
    """Delete a dataset."""
    call.client.datasets.delete(call.path["dataset"])
    return call.done(call.url("datasets"), "Deleting the dataset {name}", name=call.path["dataset"])


def _listed(call: PageCall) -> Sliced[DatasetAnswer]:
    return sliced(call.client.datasets.list(), call.request.query)
