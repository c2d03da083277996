"""Builds what datasets and volumes need: the loops, with the threads that copy datasets to hosts."""

import threading
from collections.abc import Callable
from typing import Final

from teraflock.app.bucket import bucket_of
from teraflock.app.runs import RunWorkers
from teraflock.app.settings import Place, Settings
from teraflock.base.clock import Clock
from teraflock.dataset.files import DatasetFiles
from teraflock.dataset.service import DatasetService
from teraflock.instance.changes import Admits
from teraflock.reconcile.datasets import DatasetLoop
from teraflock.reconcile.loops import Loops
from teraflock.reconcile.volumes import VolumeLoop
from teraflock.run.files import RunFiles
from teraflock.storage.database import Database

DATASETS_FOLDER: Final = "datasets"
SECONDS: Final = 0.5
SWEEP_SECONDS: Final = 3600.0
COPIES_AT_ONCE: Final = 8


def dataset_files(at: Place, settings: Settings) -> DatasetFiles:
    return DatasetFiles(at.folder / DATASETS_FOLDER, bucket_of(settings.data_bucket))


def add_data_loops(loops: Loops, files: DatasetFiles) -> RunWorkers:
    """Add the loops. Return their threads, which must be closed."""
    workers = RunWorkers("dataset", COPIES_AT_ONCE)
    datasets = DatasetLoop(loops.around, files, submit=workers.submit, worker=loops.worker)
    loops.also("datasets", datasets.turn, SECONDS, woken=threading.Event())
    loops.also("dataset_files", datasets.sweep, SWEEP_SECONDS)
    loops.also("volumes", VolumeLoop(loops.around).turn, SECONDS, woken=threading.Event())
    return workers


def dataset_service(
    database: Database,
    clock: Clock,
    files: DatasetFiles,
    uploads: RunFiles,
    random_bytes: Callable[[int], bytes],
    wake: Callable[[], None],
    admits: Admits,
) -> DatasetService:
    return DatasetService(
        database, clock, files, uploads.whole_upload, random_bytes=random_bytes, wake=wake, admits=admits
    )
