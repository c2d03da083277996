"""Runs on the wire."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from teraflock.wire.field import Micros, Name, Ref
from teraflock.wire.instance import ModeWord, VariableName, Word
from teraflock.wire.shape import ShapeRequest
from teraflock.wire.word import closed

Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
Folder = Annotated[str, Meta(max_length=1024, pattern=r"^[^\u0000-\u001f\u007f]*$(?!\n)")]
Script = Annotated[str, Meta(max_length=65_536, pattern=r"^[^\u0000]*$")]
Secret = Annotated[str, Meta(max_length=16_384, pattern=r"^[^\u0000]*$")]
Hours = Annotated[float, Meta(ge=0, le=1e6)]
UPLOAD_PIECE_BYTES = 512 << 10
UPLOAD_PIECES_MAX = 4096
RunPhaseWord = Literal[
    "queued", "starting", "setup", "caching", "copying", "running", "stopping", "collecting", "ending",
    "done", "failed", "cancelled",
]  # fmt: skip


class RunEstimateAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What was expected before the start. The server keeps it to compare it with what was measured."""

    source: Annotated[str, Meta(max_length=20)] = ""
    """`trace` (of the script), `measured` (in earlier runs of it) or `hours` (given by the user)."""
    script: Annotated[str, Meta(max_length=64, pattern=r"^[0-9a-f]*$(?!\n)")] = ""
    """SHA-256 of the script and its arguments. Later runs with the same one use what this run measured."""
    gpu: Ref = ""
    step_seconds: tuple[Hours, Hours, Hours] | None = None
    """Low, middle and high."""
    steps: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    hours: tuple[Hours, Hours, Hours] | None = None
    memory_bytes: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    cost_micros: tuple[int, int, int] | None = None
    currency: Annotated[str, Meta(max_length=3)] = ""


class RunEstimateBody(RunEstimateAnswer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was expected before the start. The server keeps it to compare it with what was measured."""


class RunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name | None = None
    """Default: a generated name."""
    command: Annotated[tuple[Word, ...], Meta(min_length=1, max_length=256)]
    """A program and its arguments. They run in the working folder, without a shell."""
    shape: ShapeRequest = ShapeRequest()
    image: Annotated[Ref, Meta(min_length=1)] = "base"
    site: Ref = ""
    provider: Ref = ""
    type: Ref = ""
    region: Ref = ""
    burst: bool = False
    mode: ModeWord = "on-demand"
    bid_micros_per_hour: Micros | None = None
    """With mode `bid`."""
    max_price_micros_per_hour: Micros | None = None
    """Do not rent a machine that costs more."""
    offer: Ref = ""
    """The offer of the catalog that you chose. For your records."""
    setup: Script = ""
    """A shell script that prepares the instance. Its result is cached as an image. It does not see the files."""
    requirements: Script = ""
    """The content of a requirements file for pip. Installed before `setup`, and cached with it."""
    environment: Annotated[Mapping[VariableName, Word], Meta(max_length=64)] = {}
    secrets: Annotated[Mapping[VariableName, Secret], Meta(max_length=32)] = {}
    """Environment variables that are stored encrypted and never shown."""
    data: Annotated[tuple[Annotated[Ref, Meta(min_length=1)], ...], Meta(max_length=16)] = ()
    """Datasets that the command reads, under `$TERA_DATA/NAME`."""
    workdir: Digest | None = None
    """The SHA-256 of a tar that was uploaded with `PUT /v1/run-files/{digest}`."""
    outputs: Folder = ""
    """The folder to keep at the end, absolute or relative to the working folder. Default: `/root/outputs`."""
    checkpoints: Folder = ""
    """The folder whose new files are copied while the command runs. Default: `/root/checkpoints`."""
    keep: Annotated[int, Meta(ge=1, le=100)] = 3
    """How many checkpoints of each series are kept."""
    attempts_max: Annotated[int, Meta(ge=1, le=100)] = 10
    """How often the command may start, if instances are lost."""
    nodes: Annotated[int, Meta(ge=1, le=32)] = 1
    """How many instances run the command at the same time, all or none, with the variables of torchrun."""
    priority: Annotated[int, Meta(ge=-100, le=100)] = 0
    """Among the launches of the project that wait for room. Higher ones start first."""
    deadline: datetime | None = None
    budget_micros: Micros | None = None
    """Stop the run when it has cost this much, in the currency of the project."""
    estimate: RunEstimateBody | None = None


SweepParameter = Annotated[str, Meta(max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$(?!\n)")]
SweepValue = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\u0000-\u001f\u007f]+$(?!\n)")]


class SweepRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    run: RunRequest
    """What all runs have in common. Its name is that of the sweep, its budget that of all runs together."""
    grid: Annotated[
        Mapping[SweepParameter, Annotated[tuple[SweepValue, ...], Meta(min_length=1, max_length=100)]],
        Meta(min_length=1, max_length=10),
    ]
    """The values of each parameter. `{lr}` in the command becomes a value of `lr`; a parameter without such a mark is
    added as `--lr VALUE`."""


class RunProgressAnswer(msgspec.Struct, frozen=True, kw_only=True):
    step: int
    of: int | None
    loss: float | None
    memory_bytes: int | None = None
    """The most GPU memory that PyTorch held so far. Null: not reported."""
    step_seconds: float | None
    """The usual time of a step: the median between reports, without saving. Null: not enough was reported."""
    ends_at: datetime | None
    """Expected, from the mean time of a step in this attempt or the one before."""
    at: datetime | None


class RunCheckpointAnswer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    size_bytes: int
    digest: str
    """SHA-256 of the stored tar."""
    pulled_at: datetime


class RunAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    project_id: str
    state: Annotated[str, closed(*get_args(RunPhaseWord))]
    wanted: Annotated[str, closed("done", "cancelled")]
    command: tuple[str, ...]
    image: str
    environment: Mapping[str, str]
    secrets: tuple[str, ...]
    """Names only."""
    data: tuple[str, ...] = ()
    sweep: str = ""
    """The name of its sweep. Empty: none."""
    parameters: Mapping[str, str] = {}
    """Its values in the sweep."""
    attempt: int
    attempts_max: int
    instance_id: str
    """The instance of this attempt. Empty: none yet. With several nodes, that of node 0."""
    nodes: int = 1
    node_instances: tuple[str, ...] = ()
    """The instances of this attempt, by node."""
    instances: tuple[str, ...]
    exit_code: int | None
    problem: str
    progress: RunProgressAnswer | None
    log_bytes: int
    outputs_bytes: int | None
    """The size of the archive with the outputs. Null: none yet, or none at all."""
    created_at: datetime
    created_by: str
    since: datetime
    """When it reached its state."""
    running_since: datetime | None
    save_every_seconds: int | None = None
    """How often the command was told to save, as `TERA_CHECKPOINT_EVERY`. Null: it never started."""
    ended_at: datetime | None
    deadline: datetime | None
    late: bool
    budget_micros: int | None
    estimate: RunEstimateAnswer | None
    cost_micros: int
    """Of all its instances, so far."""
    ends_at: datetime | None = None
    """When it is expected to end: by its progress, otherwise by the estimate. Null: unknown, or it is not running."""
    expected_cost_micros: int | None = None
    """What it will have cost then."""
    currency: str
    simulated: bool = False


class RunDetails(RunAnswer, frozen=True, kw_only=True):
    save_seconds: float | None = None
    """How long a save takes: the median of the checkpoints that are kept. Null: not measured."""
    checkpoints: tuple[RunCheckpointAnswer, ...] = ()
    losses: tuple[tuple[int, float], ...] = ()
    """Steps and losses for a chart, thinned to 120 points."""


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[RunAnswer, ...]
    next: str | None
    """The cursor of the next page."""


class RunLogAnswer(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    next: int
    """The offset in bytes to ask for next."""
    state: str
    exit_code: int | None


class UploadRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    offset: Annotated[int, Meta(ge=0, le=1 << 40)]
    size_bytes: Annotated[int, Meta(ge=1, le=1 << 40)]
    """The size of the whole file."""
    content: Annotated[
        str, Meta(max_length=UPLOAD_PIECE_BYTES * 4 // 3 + 4, pattern=r"^[A-Za-z0-9+/]*={0,2}$(?!\n)")
    ]
    """Base64, of up to 512 KiB."""


class PiecesRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    digests: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")], ...],
        Meta(min_length=1, max_length=UPLOAD_PIECES_MAX),
    ]
    """The SHA-256 of each piece of the file, in order."""
    sizes_bytes: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=8 << 20)], ...], Meta(min_length=1, max_length=UPLOAD_PIECES_MAX)
    ]
    rest: Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$(?!\n)")] = ""
    """An uploaded file with all missing pieces, in order. Left out: only ask which are missing."""


class PiecesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    missing: tuple[int, ...]
    """Positions of the pieces that no earlier upload of the project has."""
    complete: bool


class UploadAnswer(msgspec.Struct, frozen=True, kw_only=True):
    received_bytes: int
    """Continue at this offset."""
    complete: bool
