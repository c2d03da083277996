"""Converters of datasets."""

from teraflock.base.filling import filled
from teraflock.dataset.model import Dataset
from teraflock.wire.dataset import DatasetAnswer


def dataset_answer(dataset: Dataset) -> DatasetAnswer:
    return filled(DatasetAnswer, dataset)
