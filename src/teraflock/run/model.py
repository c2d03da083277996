"""Values of runs: the places where a run may be, what it has to do by when, and where it is.

A *place* is one zone in one purchase mode. Places in the modes `on-demand` and `own` are *steady*: once a run is there,
nobody takes it away. Places in the mode `spot` can disappear at any time. Machines of a gang count as one place,
because providers take them back together.

A *run* is a command that the server carries to its end on instances that it launches and deletes.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NewType

import msgspec

from teraflock.instance.orders import ShapeWish
from teraflock.run.losses import Losses
from teraflock.run.states import RunPhase, RunWanted
from teraflock.tenant.model import MemberId, ProjectId

RunMode = Literal["spot", "on-demand", "own"]


class RunPlace(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    mode: RunMode
    price_micros_per_hour: int
    changeover_hours: float
    """Time from the decision to start here until the run makes progress: launch, setup, restore."""
    egress_micros: int = 0
    """Cost to bring the checkpoint here from another place."""

    @property
    def steady(self) -> bool:
        return self.mode != "spot"


class RunTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What must be done by when."""

    work_hours: float
    deadline_hours: float
    tick_hours: float
    """The longest time between two decisions."""
    steady_wait_hours: float = 0.0
    """How long a steady place may be refused. The guard keeps this much time in reserve."""


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run is. `held` and `last` are positions in the list of places."""

    left_hours: float
    time_left_hours: float
    held: int | None = None
    overhead_hours: float = 0.0
    """How much of the changeover to `held` is left."""
    last: int | None = None
    """Where the newest checkpoint is."""


class Sight(msgspec.Struct, frozen=True):
    """Whether a place can be had now, and for how long this has been so."""

    up: bool
    age_hours: float


class NextPlace(msgspec.Struct, frozen=True):
    """The decision: be at this place until the next decision, or nowhere."""

    place: int | None
    because: str


def sights_of(series: Sequence[bool], tick_hours: float) -> tuple[Sight, ...]:
    """Return what is seen at each tick of a series. The age at the first tick is one tick."""
    found: list[Sight] = []
    age = 0
    for tick, up in enumerate(series):
        age = age + 1 if tick and up == series[tick - 1] else 1
        found.append(Sight(up, age * tick_hours))
    return tuple(found)


def gang(counts: Sequence[float], nodes: int = 1) -> tuple[bool, ...]:
    """Turn counts of available machines into the availability of all `nodes` machines together."""
    return tuple(count >= nodes for count in counts)


RunId = NewType("RunId", str)


class RunEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What the client expected before the start. The server only keeps it, to compare it with what was measured."""

    source: str = ""
    """`trace` (of the script), `measured` (in earlier runs of it) or `hours` (given by the user)."""
    script: str = ""
    """SHA-256 of the script and its arguments."""
    gpu: str = ""
    step_seconds: tuple[float, float, float] | None = None
    """Low, middle and high."""
    steps: int | None = None
    hours: tuple[float, float, float] | None = None
    memory_bytes: int | None = None
    cost_micros: tuple[int, int, int] | None = None
    currency: str = ""


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is fixed when a run is created. Stored as JSON, because no query filters by it."""

    command: tuple[str, ...]
    shape: ShapeWish = ShapeWish()
    image: str = "base"
    site: str = ""
    provider: str = ""
    type: str = ""
    region: str = ""
    burst: bool = False
    mode: str = "on-demand"
    bid_micros_per_hour: int | None = None
    price_limit_micros_per_hour: int | None = None
    """Do not rent a machine that costs more."""
    offer: str = ""
    """The offer of the catalog that it was made from."""
    setup: str = ""
    """A shell script that runs before the files are copied. Its result is cached as an image."""
    requirements: str = ""
    """The content of a requirements file, installed with pip before `setup`. Cached like it."""
    environment: Mapping[str, str] = {}
    secrets: tuple[str, ...] = ()
    """Names only. The values are encrypted in another table."""
    data: tuple[str, ...] = ()
    """Datasets that the command reads."""
    workdir: str = ""
    """The SHA-256 of the uploaded tar. Empty: no files."""
    outputs: str = ""
    """A folder, absolute or relative to the working folder. Empty: `OUTPUTS`."""
    checkpoints: str = ""
    keep: int = 3
    """How many checkpoints of each series are kept."""
    attempts_max: int = 10
    nodes: int = 1
    """How many instances run the command at the same time, all or none."""
    priority: int = 0
    """Among the launches of the project that wait for room."""
    deadline: datetime | None = None
    budget_micros: int | None = None
    estimate: RunEstimate | None = None
    parameters: Mapping[str, str] = {}
    """Its values in a sweep."""


class RunProgress(msgspec.Struct, frozen=True, kw_only=True):
    """What the command reported with `teraflock.progress`. The guest controls it: bounded, otherwise not trusted."""

    step: int
    of: int | None = None
    loss: float | None = None
    memory_bytes: int | None = None
    """The most GPU memory that PyTorch held, over all attempts."""
    first_step: int = 0
    """The first step of this attempt, and when it was reported: they give the measured time of a step."""
    first_at: datetime | None = None
    at: datetime | None = None
    before_seconds: float | None = None
    """The mean time of a step in the attempt before."""
    paces: tuple[float, ...] = ()
    """Seconds per step between two reports, the newest last. Over all attempts, without the time between them."""
    losses: Losses = ()
    """Over all attempts."""


class RunNode(msgspec.Struct, frozen=True, kw_only=True):
    """One instance of a run."""

    instance_id: str
    log_guest_bytes: int = 0
    """How much of the guest's log of this attempt was copied."""
    log_bytes: int = 0
    """The size of its log on the server, over all attempts."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    id: RunId
    project_id: ProjectId
    name: str
    wanted: RunWanted = RunWanted.DONE
    phase: RunPhase = RunPhase.QUEUED
    spec: RunSpec
    created_at: datetime
    created_by: MemberId
    sweep: str = ""
    """The name of its sweep. The budget is that of all runs of a sweep together."""
    attempt: int = 1
    tries: int = 0
    """How often the current act has failed."""
    since: datetime
    """When the current phase began."""
    instance_id: str = ""
    """Node 0, which has the checkpoints and the outputs."""
    others: tuple[RunNode, ...] = ()
    """Nodes 1 and up, of a run with several."""
    instances: tuple[str, ...] = ()
    """Every instance of this run, for its cost."""
    image_id: str = ""
    """The image of the setup that is being made."""
    outcome: RunPhase | None = None
    """What follows after `ending`."""
    is_term_sent: bool = False
    """While it stops: the command got SIGTERM."""
    keeps_instance: bool = False
    """Stop the instance instead of deleting it, because its outputs could not be copied."""
    exit_code: int | None = None
    problem: str = ""
    progress: RunProgress | None = None
    log_guest_bytes: int = 0
    log_bytes: int = 0
    """The log of node 0, as in `RunNode`."""
    outputs_bytes: int | None = None
    pulled_at: datetime | None = None
    """When checkpoints were last looked for."""
    away_since: datetime | None = None
    """Since when its instance cannot be reached."""
    running_since: datetime | None = None
    """When the command of this attempt started."""
    save_every_seconds: int | None = None
    """How often the command was told to save. None: it never started."""
    ended_at: datetime | None = None
    due_at: datetime

    @property
    def key(self) -> str:
        """Names this attempt in the guest."""
        return f"{self.id}.{self.attempt}"


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder that the command wrote into its checkpoint folder, as a tar on the server."""

    id: str
    run_id: RunId
    name: str
    mark: str
    """Changes whenever the guest replaces the file."""
    written_ns: int
    """The guest's time of the last change: orders the checkpoints of a run."""
    size_bytes: int
    digest: str
    """SHA-256 of the tar."""
    pulled_at: datetime
    bucket: str = ""
    """The region whose bucket has it. Empty: the server."""
    saved_seconds: float | None = None
    """How long the command took to save it. None: not measured."""
