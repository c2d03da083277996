"""The memory over one step that a plan shows: it comes close to the estimated peak and never exceeds it."""

import pytest

from teraflock.estimate.estimator import Estimator
from teraflock.estimate.memory import Memory
from teraflock.plan.job import Job
from teraflock.workload.model import Workload


def workload(batch: int) -> Workload:
    return Workload(model="resnet18", batch=batch, optimizer="sgd")


def memory(job: Job, gpus: int) -> Memory:
    found = job.memory_over_step(gpus)
    assert found is not None
    return found


@pytest.mark.parametrize(("gpus", "batch"), [(1, 64), (4, 16), (3, 22)])
def test_a_split_batch_reaches_the_peak_of_its_share(gpus: int, batch: int) -> None:
    found = memory(Job(workload(64), steps=1, samples=None, global_batch=64), gpus)
    peak = Estimator(workload(batch)).memory().live_peak_bytes
    assert found.live_peak_bytes == peak
    assert 0.9 * peak < max(found.timeline) <= peak, "peaks within an operation are a little higher"


def test_a_batch_per_gpu_is_the_same_on_many_and_sharded_jobs_have_none() -> None:
    job = Job(workload(32), steps=1, samples=None)
    assert memory(job, 8).timeline == memory(job, 1).timeline
    assert len(memory(job, 1).timeline) > 100
    assert Job(workload(32), steps=1, samples=None, stage=3).memory_over_step(8) is None
