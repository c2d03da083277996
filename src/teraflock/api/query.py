"""Query parameters of the routes. Unknown parameters are refused, as in bodies."""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from teraflock.base.limits import LABEL_KEY
from teraflock.base.quantities import Word
from teraflock.offer.words import OfferWords
from teraflock.wire.bill import ByWord, MarginByWord
from teraflock.wire.field import Micros, Month, Reason
from teraflock.wire.field import Ref as AnyRef
from teraflock.wire.instance import LogSource, PhaseWord

LIMIT: Final = 50
LIMIT_MAX: Final = 200
OFFERS_MAX: Final = 1000

Ref = Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[^\u0000-\u001f\u007f]+$(?!\n)")]
ProjectRef = Annotated[
    Ref,
    Meta(
        description="Id or name of the project. Operators can use `ORGANISATION:PROJECT`."
        " Default: the project of the key, otherwise the only one it has access to, otherwise `default`."
    ),
]
OrganisationRef = Annotated[
    Ref, Meta(description="Id or name of the organisation, for operators. Default: your own.")
]
Cursor = Annotated[str, Meta(max_length=100, pattern=r"^[A-Za-z0-9_]*$(?!\n)")]
LabelPair = Annotated[
    str,
    Meta(max_length=319, pattern=rf"^{LABEL_KEY}=[^\u0000]*$"),
]
After = Annotated[Cursor, Meta(description="The value of `next` in the previous page.")]
Limit = Annotated[int, Meta(ge=1, le=LIMIT_MAX, description="The maximum number of items in the response.")]

ReadingsPeriod = Annotated[
    Literal["hour", "day", "month"],
    Meta(description="An hour with a point every 10 s, a day every 5 min, or 30 days every 2.5 h."),
]
ReadingsUntil = Annotated[
    datetime,
    Meta(
        tz=True,
        description="The end of the period, with its zone. 10 s points are kept for a day. Default: now.",
    ),
]


class _Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class InProject(_Query, frozen=True, kw_only=True):
    project: ProjectRef | None = None


class InOrganisation(_Query, frozen=True, kw_only=True):
    organisation: OrganisationRef | None = None


class Page(_Query, frozen=True, kw_only=True):
    after: After = ""
    limit: Limit = LIMIT


class LimitQuery(_Query, frozen=True, kw_only=True):
    limit: Limit = LIMIT


class ServerEventsQuery(Page, frozen=True, kw_only=True):
    alerts: Annotated[bool, Meta(description="Only alerts, such as a lost card or a full disk.")] = False


HostIds = Annotated[
    tuple[Ref, ...], Meta(max_length=40, description="Only hosts with these ids. Can be repeated.")
]


class HostReadingsQuery(_Query, frozen=True, kw_only=True):
    host: HostIds = ()


class HostCostPageQuery(Page, frozen=True, kw_only=True):
    host: HostIds = ()


class HostPageQuery(Page, frozen=True, kw_only=True):
    kind: Annotated[
        Literal["own", "rented", "all"],
        Meta(
            description="`rented` hosts are rented for one instance each. Hosts that were given back stay in the list."
        ),
    ] = "own"


class ReadingsQuery(_Query, frozen=True, kw_only=True):
    period: ReadingsPeriod = "hour"
    until: ReadingsUntil | None = None


class ReadingsInProject(InProject, frozen=True, kw_only=True):
    period: ReadingsPeriod = "hour"
    until: ReadingsUntil | None = None


class PageInProject(InProject, frozen=True, kw_only=True):
    after: After = ""
    limit: Limit = LIMIT


class PageInOrganisation(InOrganisation, frozen=True, kw_only=True):
    after: After = ""
    limit: Limit = LIMIT


class QueuePageQuery(PageInProject, frozen=True, kw_only=True):
    ended: Annotated[bool, Meta(description="Include launches that no longer wait.")] = False


class BidPageQuery(PageInProject, frozen=True, kw_only=True):
    region: Annotated[str, Meta(max_length=100, description="Only prices in this region.")] = ""
    gpu: Annotated[str, Meta(max_length=100, description="Only prices of this GPU model.")] = ""


class InstancePageQuery(PageInProject, frozen=True, kw_only=True):
    gone: Annotated[bool, Meta(description="Include deleted ones.")] = False
    state: Annotated[
        tuple[PhaseWord, ...],
        Meta(max_length=10, description="Only instances in this state. Can be repeated."),
    ] = ()
    label: Annotated[
        tuple[LabelPair, ...],
        Meta(
            max_length=10,
            description="Only instances with this label, `key=value`. Can be repeated; all must match.",
        ),
    ] = ()
    name: Annotated[
        str,
        Meta(
            max_length=63,
            pattern=r"^[a-z0-9*?-]*$(?!\n)",
            description="Only instances whose name matches. `*` matches any text, `?` one character.",
        ),
    ] = ""


class NameQuery(_Query, frozen=True, kw_only=True):
    name: Annotated[Word | None, Meta(description="Only this GPU model, by any of its names.")] = None


class OfferQuery(OfferWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    refused: Annotated[
        bool, Meta(description="Include offers whose price was rejected, after all others.")
    ] = False
    limit: Annotated[
        int, Meta(ge=1, le=OFFERS_MAX, description="The maximum number of offers in the response.")
    ] = LIMIT


class HistoryQuery(OfferWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The filters of offers. At least one `gpu` is required."""


class RunPageQuery(PageInProject, frozen=True, kw_only=True):
    active: Annotated[bool, Meta(description="Only runs that are not over.")] = False


class RunLogQuery(InProject, frozen=True, kw_only=True):
    offset: Annotated[int, Meta(ge=0, le=1 << 40, description="Where to begin, in bytes.")] = 0
    node: Annotated[int, Meta(ge=0, le=1000, description="Of which node. The first is 0.")] = 0


class RunRetryQuery(InProject, frozen=True, kw_only=True):
    budget_micros: Annotated[
        Micros | None,
        Meta(description="Its new budget, over all attempts. Without it, the old one."),
    ] = None


class CheckpointQuery(InProject, frozen=True, kw_only=True):
    name: Annotated[Ref, Meta(description="The name of the checkpoint.")]


class FileQuery(InProject, frozen=True, kw_only=True):
    path: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=4096,
            pattern=r"^/[^\u0000]*$(?!\n)",
            description="A file or folder on the instance's disk, as an absolute path.",
        ),
    ]


class OfInstanceQuery(InProject, frozen=True, kw_only=True):
    instance: Annotated[AnyRef, Meta(description="Only those of this instance.")] = ""


class SecurityGroupQuery(InProject, frozen=True, kw_only=True):
    instances_max: (
        Annotated[int, Meta(ge=1, le=1000, description="How many members to list. Default: all.")] | None
    ) = None


class SecurityGroupListQuery(InProject, frozen=True, kw_only=True):
    instance: Annotated[AnyRef, Meta(description="Only those of this instance.")] = ""
    instances: Annotated[
        bool, Meta(description="`false`: without the names of members, which is faster in a large project.")
    ] = True


class NetworkListQuery(InProject, frozen=True, kw_only=True):
    instances: Annotated[
        bool, Meta(description="`false`: without the instances, which is faster in a large project.")
    ] = True


class AclAttachQuery(InProject, frozen=True, kw_only=True):
    network: Annotated[Ref, Meta(description="The network of the subnet.")] = "default"
    subnet: Annotated[Ref, Meta(description="The subnet.")] = "default"


class OfNetworkQuery(InProject, frozen=True, kw_only=True):
    network: Annotated[AnyRef, Meta(description="Only those of this network.")] = ""


class NetworkCheckQuery(InProject, frozen=True, kw_only=True):
    source: Annotated[Ref, Meta(description="An instance, `internet`, or an address.")]
    target: Annotated[Ref, Meta(description="An instance, `internet`, or an address.")]
    protocol: Annotated[str, Meta(max_length=10, description="`tcp`, `udp` or `icmp`.")] = "tcp"
    port: Annotated[str, Meta(max_length=20, description="The port of the target; none for ICMP.")] = ""
    ipv6: Annotated[bool, Meta(description="Whether it uses the IPv6 addresses of both ends.")] = False


class LogQuery(InProject, frozen=True, kw_only=True):
    source: Annotated[
        LogSource | None,
        Meta(description="Default: the command's output, or the console if there is no command."),
    ] = None


class OperatorQuery(InOrganisation, frozen=True, kw_only=True):
    project: ProjectRef | None = None


class OperatorPageQuery(OperatorQuery, frozen=True, kw_only=True):
    host: Annotated[Ref | None, Meta(description="Only instances on this host, by id or name.")] = None
    state: Annotated[Ref | None, Meta(description="Only instances in this state.")] = None
    after: After = ""
    limit: Limit = LIMIT


class ReasonQuery(OperatorQuery, frozen=True, kw_only=True):
    reason: Reason


class EventPageQuery(PageInProject, frozen=True, kw_only=True):
    newest_first: Annotated[
        bool, Meta(description="Start with the newest event; `next` leads to older ones.")
    ] = False


class MonthQuery(InProject, frozen=True, kw_only=True):
    month: Annotated[Month | None, Meta(description="Default: this month.")] = None


class LineQuery(PageInProject, frozen=True, kw_only=True):
    month: Annotated[Month | None, Meta(description="Default: this month.")] = None
    instance: Annotated[Ref, Meta(description="Only charges of this instance, by its id.")] = ""


class MarginQuery(_Query, frozen=True, kw_only=True):
    month: Annotated[Month | None, Meta(description="Left out: the present one.")] = None
    by: MarginByWord = "project"


class BillQuery(MonthQuery, frozen=True, kw_only=True):
    by: ByWord = "gpu"
    label: Annotated[
        str,
        Meta(
            max_length=63,
            pattern=r"^[A-Za-z0-9._/-]*$(?!\n)",
            description="With `by=label`: the key of the label. Default: all labels.",
        ),
    ] = ""


class LostQuery(_Query, frozen=True, kw_only=True):
    lost: Annotated[
        bool,
        Meta(
            description="The host will never return. Its instances and volumes are lost, except volumes with a copy on"
            " another host. Switch the machine off first."
        ),
    ] = False


class ForceQuery(_Query, frozen=True, kw_only=True):
    force: Annotated[bool, Meta(description="Skip the question to the provider.")] = False
