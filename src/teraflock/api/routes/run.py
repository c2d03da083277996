"""Runs: commands that the server carries to their end on instances of their own."""

from collections.abc import Generator, Sequence

from teraflock.api.call import Call, cut
from teraflock.api.convert.run import content_from, pieces_from, run_answer, run_cost, run_details, spec_from
from teraflock.api.query import CheckpointQuery, InProject, RunLogQuery, RunPageQuery, RunRetryQuery
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.run.model import Run, RunId
from teraflock.run.rules import RunCost
from teraflock.tenant.rules import Permission
from teraflock.wire.run import (
    PiecesAnswer,
    PiecesRequest,
    RunAnswer,
    RunDetails,
    RunLogAnswer,
    RunPage,
    RunRequest,
    SweepRequest,
    UploadAnswer,
    UploadRequest,
)

routes = Routes("runs", scope=Scope.PROJECT, read=Permission.INSTANCE_ENTER, write=Permission.INSTANCE_WRITE)


@routes.get("/v1/runs", may=Permission.INSTANCE_READ)
def list_runs(call: Call, query: RunPageQuery) -> RunPage:
    """List the runs of a project, newest first."""
    found = call.nouns.runs.page(
        call.project.id, before=query.after, limit=query.limit + 1, active=query.active
    )
    rows, last = cut(found, query.limit)
    costs = _costs(call, rows)
    now, simulated = call.services.clock.now(), _is_simulated(call)
    items = tuple(run_answer(run, costs[run.id], now, simulated=simulated) for run in rows)
    return RunPage(items=items, next=last.id if last else None)


@routes.post("/v1/runs", status=202, creates=True, errors=("suspended", "quota_reached", "conflict"))
def create_run(call: Call, query: InProject, body: RunRequest) -> RunAnswer:
    """Run a command on an instance of its own, and delete the instance afterwards.

    The response comes immediately; `state` shows the progress. Upload the files of the command first, with
    `PUT /v1/run-files/{digest}`.
    """
    run = call.nouns.runs.create(call.actor, call.project, body.name or "", spec_from(body), body.secrets)
    return _answer(call, run)


@routes.post("/v1/sweeps", status=202, creates=True, errors=("suspended", "quota_reached", "conflict"))
def create_sweep(call: Call, query: InProject, body: SweepRequest) -> RunPage:
    """Create a run for each combination of values, up to 100. All or none of them are created."""
    given = body.run
    made = call.nouns.runs.create_sweep(
        call.actor, call.project, given.name or "", spec_from(given), given.secrets, body.grid
    )
    return RunPage(items=tuple(_answer(call, run) for run in made), next=None)


@routes.get("/v1/runs/{run}", may=Permission.INSTANCE_READ)
def show_run(call: Call, query: InProject, run: str) -> RunDetails:
    """Show one run, by id or name, with its checkpoints and costs."""
    found = call.nouns.runs.run(call.project.id, run)
    kept = call.nouns.runs.checkpoints(call.project.id, found.id)
    now = call.services.clock.now()
    return run_details(found, kept, _cost(call, found), now, simulated=_is_simulated(call))


@routes.post("/v1/runs/{run}/cancel", status=202)
def cancel_run(call: Call, query: InProject, run: str) -> RunAnswer:
    """Cancel a run. Its command gets SIGTERM and 30 seconds; then its checkpoints and outputs are kept."""
    return _answer(call, call.nouns.runs.cancel(call.actor, call.project, run))


@routes.post("/v1/runs/{run}/retry", status=202, errors=("conflict", "suspended"))
def retry_run(call: Call, query: RunRetryQuery, run: str) -> RunAnswer:
    """Continue a failed or cancelled run from its last checkpoints."""
    return _answer(call, call.nouns.runs.retry(call.actor, call.project, run, query.budget_micros))


@routes.get("/v1/runs/{run}/log", work=RouteWork.LOOKUP)
def show_run_log(call: Call, query: RunLogQuery, run: str) -> RunLogAnswer:
    """Get the output of a run from an offset on. It stays after the end of the run, for 30 days."""
    log = call.nouns.runs.log(call.project.id, run, query.offset, query.node)
    return RunLogAnswer(text=log.text, next=log.next, state=log.run.phase, exit_code=log.run.exit_code)


@routes.get("/v1/runs/{run}/outputs", work=RouteWork.LONG, media_type="application/x-tar")
def fetch_run_outputs(call: Call, query: InProject, run: str) -> Generator[bytes, None, None]:
    """Download the outputs of a run as tar: plain files and folders, no links."""
    yield from call.nouns.runs.outputs(call.project.id, run)


@routes.get("/v1/runs/{run}/checkpoint", work=RouteWork.LONG, media_type="application/x-tar")
def fetch_run_checkpoint(call: Call, query: CheckpointQuery, run: str) -> Generator[bytes, None, None]:
    """Download a checkpoint of a run as tar."""
    yield from call.nouns.runs.checkpoint(call.project.id, run, query.name)


@routes.get(
    "/v1/run-files/{digest}", may=Permission.INSTANCE_WRITE, work=RouteWork.LOOKUP, errors=("bad_input",)
)
def show_run_files(call: Call, query: InProject, digest: str) -> UploadAnswer:
    """Show how much of a file has arrived. `digest` is its SHA-256."""
    received, complete = call.nouns.runs.files.received_bytes(call.project.id, digest)
    return UploadAnswer(received_bytes=received, complete=complete)


@routes.put("/v1/run-files/{digest}")
def upload_run_files(call: Call, query: InProject, digest: str, body: UploadRequest) -> UploadAnswer:
    """Upload a piece of a tar for runs. `digest` is the SHA-256 of the whole.

    If the offset is not where the last piece ended, nothing is stored, and the response has the right one.
    """
    files = call.nouns.runs.files
    received, complete = files.receive(
        call.project.id, digest, body.offset, content_from(body), body.size_bytes
    )
    return UploadAnswer(received_bytes=received, complete=complete)


@routes.post("/v1/run-files/{digest}/pieces", errors=("conflict", "refused"))
def assemble_run_files(call: Call, query: InProject, digest: str, body: PiecesRequest) -> PiecesAnswer:
    """Make a file for runs from pieces of earlier ones, so that only changes are uploaded.

    Ask first which pieces are missing, upload these as one file, and ask again with `rest`. If none is missing, or the
    whole file is uploaded, the response is complete at once.
    """
    files, pieces = call.nouns.runs.files, pieces_from(body)
    missing = files.missing_pieces(call.project.id, digest, pieces)
    if missing and not body.rest:
        return PiecesAnswer(missing=missing, complete=False)
    files.assemble(call.project.id, digest, pieces, body.rest)
    return PiecesAnswer(missing=(), complete=True)


def _answer(call: Call, run: Run) -> RunAnswer:
    return run_answer(run, _cost(call, run), call.services.clock.now(), simulated=_is_simulated(call))


def _cost(call: Call, run: Run) -> RunCost:
    return _costs(call, [run])[run.id]


def _costs(call: Call, runs: Sequence[Run]) -> dict[RunId, RunCost]:
    """What runs of the project cost so far. Reads the books once for all of them."""
    ids = [id for run in runs for id in run.instances]
    costs = call.nouns.bills.costs(call.project.id, ids) if ids else {}
    return {run.id: run_cost([costs[id] for id in run.instances]) for run in runs}


def _is_simulated(call: Call) -> bool:
    return call.services.reality() == "simulated"
