"""What may stand behind the question mark of a path. Words nobody knows are refused, as in bodies."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from teraflock.base.quantities import Word
from teraflock.offer.words import OfferWords
from teraflock.wire.bill import ByWord, MarginByWord
from teraflock.wire.field import Month, Reason
from teraflock.wire.instance import LogSource, PhaseWord

LIMIT: Final = 50
LIMIT_MAX: Final = 200
OFFERS_MAX: Final = 1000

Ref = Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[^\u0000-\u001f\u007f]+$(?!\n)")]
ProjectRef = Annotated[
    Ref,
    Meta(
        description="Id or name; for operators also `ORGANISATION:PROJECT`."
        " Left out: the key's own, else the only one it reaches, else `default`."
    ),
]
OrganisationRef = Annotated[Ref, Meta(description="Id or name; for operators. Left out: the key's own.")]
Cursor = Annotated[str, Meta(max_length=100, pattern=r"^[A-Za-z0-9_]*$(?!\n)")]
LabelPair = Annotated[
    str,
    Meta(max_length=319, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?=[^\u0000]*$"),
]
After = Annotated[Cursor, Meta(description="`next` of the page before.")]
Limit = Annotated[int, Meta(ge=1, le=LIMIT_MAX, description="The most items in the answer.")]


class _Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class InProject(_Query, frozen=True, kw_only=True):
    project: ProjectRef | None = None


class InOrganisation(_Query, frozen=True, kw_only=True):
    organisation: OrganisationRef | None = None


class Page(_Query, frozen=True, kw_only=True):
    after: After = ""
    limit: Limit = LIMIT


class HostPageQuery(Page, frozen=True, kw_only=True):
    kind: Annotated[
        Literal["own", "rented", "all"],
        Meta(description="`rented` hosts are made for one instance each; those given back stay listed."),
    ] = "own"


class PageInProject(InProject, frozen=True, kw_only=True):
    after: After = ""
    limit: Limit = LIMIT


class PageInOrganisation(InOrganisation, frozen=True, kw_only=True):
    after: After = ""
    limit: Limit = LIMIT


class InstancePageQuery(PageInProject, frozen=True, kw_only=True):
    gone: Annotated[bool, Meta(description="With those that were deleted.")] = False
    state: Annotated[
        tuple[PhaseWord, ...], Meta(max_length=10, description="Only those in this state; may be repeated.")
    ] = ()
    label: Annotated[
        tuple[LabelPair, ...],
        Meta(
            max_length=10,
            description="Only those with this label, `key=value`; may be repeated: all must be there.",
        ),
    ] = ()
    name: Annotated[
        str,
        Meta(
            max_length=63,
            pattern=r"^[a-z0-9*?-]*$(?!\n)",
            description="Only those whose name is like this: `*` stands for any text, `?` for one character.",
        ),
    ] = ""


class NameQuery(_Query, frozen=True, kw_only=True):
    name: Annotated[Word | None, Meta(description="Only this one, by any of its names.")] = None


class OfferQuery(OfferWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    refused: Annotated[bool, Meta(description="With offers whose price was refused, after all others.")] = (
        False
    )
    limit: Annotated[int, Meta(ge=1, le=OFFERS_MAX, description="The most offers in the answer.")] = LIMIT


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


class LogQuery(InProject, frozen=True, kw_only=True):
    source: Annotated[
        LogSource | None, Meta(description="Left out: the command's output; without a command, the console.")
    ] = None


class OperatorQuery(InOrganisation, frozen=True, kw_only=True):
    project: ProjectRef | None = None


class OperatorPageQuery(OperatorQuery, frozen=True, kw_only=True):
    host: Annotated[Ref | None, Meta(description="Id or name: on this host only.")] = None
    state: Annotated[Ref | None, Meta(description="In this state only.")] = None
    after: After = ""
    limit: Limit = LIMIT


class ReasonQuery(OperatorQuery, frozen=True, kw_only=True):
    reason: Reason


class EventPageQuery(PageInProject, frozen=True, kw_only=True):
    newest_first: Annotated[bool, Meta(description="From the latest back; `next` is older.")] = False


class MonthQuery(InProject, frozen=True, kw_only=True):
    month: Annotated[Month | None, Meta(description="Left out: the present one.")] = None


class LineQuery(PageInProject, frozen=True, kw_only=True):
    month: Annotated[Month | None, Meta(description="Left out: the present one.")] = None


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
            description="With `by=label`: the key; left out: all of them.",
        ),
    ] = ""
