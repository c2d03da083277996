"""Runs: the live list, and one run with its progress, log, losses, checkpoints and cost."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from teraflock.base.errors import NotFound
from teraflock.console.answer import Answer, Forwarded
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.run_comparison import comparison
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.run import RunDetails, RunLogAnswer
from teraflock.words.run import OVER

pages = Pages()
ROWS: Final = 50
LOG_BYTES: Final = 32 << 10
"""How much of the end of the log the page has at first."""
OF_PROJECT: Final = "/projects/{project}/runs"
OF_ONE: Final = f"{OF_PROJECT}/{{run}}"
READ: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.INSTANCE_READ}
WRITE: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.INSTANCE_WRITE}
ENTER: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.INSTANCE_ENTER}


@pages.get(OF_PROJECT, **READ)
def list_runs(call: PageCall) -> Answer:
    """The runs of a project, newest first."""
    return call.page("runs/list.html", section="runs", **_listed(call))


@pages.get(f"{OF_PROJECT}-rows", **READ)
def list_run_rows(call: PageCall) -> Answer:
    """The rows of the list, requested again while runs go on."""
    return call.part("runs/rows.html", **_listed(call))


@pages.get(OF_ONE, **READ)
def show_run(call: PageCall) -> Answer:
    """One run."""
    run = call.client.runs.get(call.path["run"])
    return call.page("runs/show.html", section="runs", **_shown(call, run), log=_log_end(call, run))


@pages.get(f"{OF_ONE}/facts", **READ)
def show_run_facts(call: PageCall) -> Answer:
    """What changes on the page of a run."""
    return call.part("runs/facts.html", **_shown(call, call.client.runs.get(call.path["run"])))


@pages.get(f"{OF_ONE}/losses", **READ)
def show_run_losses(call: PageCall) -> Answer:
    """The losses by step, for the chart."""
    run = call.client.runs.get(call.path["run"])
    return _json({"points": run.losses, "over": run.state in OVER})


@pages.get(f"{OF_ONE}/log", **ENTER)
def follow_run_log(call: PageCall) -> Answer:
    """The log from an offset on. The page appends it."""
    log = call.client.runs.log(call.path["run"], call.request.query.number("offset") or 0)
    return _json({"text": log.text, "next": log.next, "over": log.state in OVER})


@pages.get(f"{OF_ONE}/outputs", stream=True, **ENTER)
def download_run_outputs(call: PageCall) -> Forwarded:
    """The outputs as tar."""
    return _download(call, "outputs")


@pages.get(f"{OF_ONE}/checkpoint", stream=True, **ENTER)
def download_run_checkpoint(call: PageCall) -> Forwarded:
    """A checkpoint as tar."""
    return _download(call, "checkpoint", name=call.request.query.text("name"))


@pages.post(f"{OF_ONE}/cancel", on_error=show_run, **WRITE)
def cancel_run(call: PageCall) -> Answer:
    """Stop it and keep its checkpoints and outputs."""
    run = call.client.runs.cancel(call.path["run"])
    return call.done(_url(call, run.id), "Cancelling {name}. Its checkpoints are kept", name=run.name)


@pages.post(f"{OF_ONE}/retry", on_error=show_run, **WRITE)
def retry_run(call: PageCall) -> Answer:
    """Continue it from its last checkpoints."""
    run = call.client.runs.retry(call.path["run"])
    return call.done(_url(call, run.id), "{name} is queued again", name=run.name)


def _url(call: PageCall, id: str) -> str:
    return call.url("runs", id)


def _listed(call: PageCall) -> dict[str, Any]:
    query = call.request.query
    after, active = query.text("after"), bool(query.text("active"))
    page = call.client.runs.page(after=after, limit=ROWS, active=active)
    return {"page": page, "after": after, "active": active, "over": OVER}


def _shown(call: PageCall, run: RunDetails) -> dict[str, Any]:
    return {"run": run, "compared": comparison(run, call.now), "over": run.state in OVER}


def _log_end(call: PageCall, run: RunDetails) -> RunLogAnswer | None:
    """The end of the log. None: the reader may not see it, or it was deleted."""
    if not call.may(Permission.INSTANCE_ENTER):
        return None
    try:
        return call.client.runs.log(run.id, max(0, run.log_bytes - LOG_BYTES))
    except NotFound:
        return None


def _download(call: PageCall, what: str, **more: str) -> Forwarded:
    query = urlencode({"project": call.project.id, **more})
    return Forwarded(target=f"/v1/runs/{quote(call.path['run'], safe='')}/{what}?{query}")


def _json(value: object) -> Answer:
    return Answer(body=msgspec.json.encode(value), media_type="application/json")
