"""Converters of datasets."""

from teraflock.dataset.model import Dataset
from teraflock.wire.dataset import DatasetAnswer


def dataset_answer(dataset: Dataset) -> DatasetAnswer:
    return DatasetAnswer(
        id=dataset.id,
        name=dataset.name,
        state=dataset.state,
        size_bytes=dataset.size_bytes,
        files=dataset.files,
        digest=dataset.digest,
        created_at=dataset.created_at,
        created_by=dataset.created_by,
        ready_at=dataset.ready_at,
    )
