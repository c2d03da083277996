"""Datasets: files that a project stores once and that its instances and runs read."""

from typing import Final

from teraflock.api.call import Call
from teraflock.api.convert.run import content_from
from teraflock.api.query import InProject
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.base.filling import filled
from teraflock.dataset.model import Dataset
from teraflock.tenant.rules import Permission
from teraflock.wire.dataset import ChunkAnswer, DatasetAnswer, DatasetList, DatasetRequest, MissingChunks
from teraflock.wire.run import UploadAnswer, UploadRequest

routes = Routes(
    "datasets", scope=Scope.PROJECT, read=Permission.INSTANCE_READ, write=Permission.INSTANCE_WRITE
)
MISSING_MAX: Final = 1000


@routes.get("/v1/datasets")
def list_datasets(call: Call, query: InProject) -> DatasetList:
    """List the datasets of a project."""
    return DatasetList(items=tuple(map(dataset_answer, call.nouns.datasets.all(call.project))))


@routes.post(
    "/v1/datasets", status=201, errors=("conflict", "refused", "suspended", "quota_reached", "budget_reached")
)
def create_dataset(call: Call, query: InProject, body: DatasetRequest) -> DatasetAnswer:
    """Announce a dataset by its manifest. The same name and content again: continue its upload."""
    return dataset_answer(call.nouns.datasets.create(call.actor, call.project, body.name, body.manifest))


@routes.get("/v1/datasets/{dataset}")
def show_dataset(call: Call, query: InProject, dataset: str) -> DatasetAnswer:
    """Show one dataset, by id or name."""
    return dataset_answer(call.nouns.datasets.dataset(call.project, dataset))


@routes.get("/v1/datasets/{dataset}/missing", may=Permission.INSTANCE_WRITE, work=RouteWork.LOOKUP)
def list_missing_chunks(call: Call, query: InProject, dataset: str) -> MissingChunks:
    """List the chunks that have not arrived, up to 1000 of them."""
    found, count = call.nouns.datasets.missing(call.project, dataset, limit=MISSING_MAX)
    items = tuple(ChunkAnswer(digest=each.digest, size_bytes=each.size_bytes) for each in found)
    return MissingChunks(items=items, count=count)


@routes.put("/v1/datasets/{dataset}/chunks/{digest}")
def upload_chunk(
    call: Call, query: InProject, dataset: str, digest: str, body: UploadRequest
) -> UploadAnswer:
    """Upload a piece of a chunk. `digest` is the SHA-256 of the chunk.

    If the offset is not where the last piece ended, nothing is stored, and the response has the right one.
    """
    received, complete = call.nouns.datasets.receive(
        call.project, dataset, digest, body.offset, content_from(body)
    )
    return UploadAnswer(received_bytes=received, complete=complete)


@routes.post("/v1/datasets/{dataset}/complete", errors=("conflict",))
def complete_dataset(call: Call, query: InProject, dataset: str) -> DatasetAnswer:
    """Make a dataset usable, once all chunks have arrived. It is charged from now on."""
    return dataset_answer(call.nouns.datasets.complete(call.actor, call.project, dataset))


@routes.delete("/v1/datasets/{dataset}", status=204, locks=True)
def delete_dataset(call: Call, query: InProject, dataset: str) -> None:
    """Delete a dataset that no instance uses. It is charged until now."""
    call.nouns.datasets.delete(call.actor, call.project, dataset)


def dataset_answer(dataset: Dataset) -> DatasetAnswer:
    return filled(DatasetAnswer, dataset)
