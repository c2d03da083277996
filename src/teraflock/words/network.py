"""Networks as text; who can reach whom, as columns of a table and as a picture."""

from collections.abc import Iterator, Sequence
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING, Final, NamedTuple
from xml.sax.saxutils import escape

from teraflock.words.security_group import rule_text
from teraflock.words.table import Field, Fields

if TYPE_CHECKING:
    from teraflock.wire.network import (
        ConnectionAnswer,
        DecidingRule,
        NetworkAnswer,
        NetworkGraphAnswer,
        NetworkInstance,
        PeeringAnswer,
    )

INTERNET: Final = "internet"
EVERYTHING: Final = "everything"
NODE_WIDTH: Final = 132
NODE_HEIGHT: Final = 34
LABELS_MAX: Final = 40
"""With more connections, labels would cover each other: they are shown as tooltips only."""
LABEL_HEIGHT: Final = 12
LETTER_WIDTH: Final = 5.5
NAME_MAX: Final = 17


class _Box(NamedTuple):
    """A rectangle, by its centre."""

    x: float
    y: float
    width: float
    height: float

    def covers(self, other: "_Box") -> bool:
        """Whether they have a place in common."""
        wide = abs(self.x - other.x) * 2 < self.width + other.width
        return wide and abs(self.y - other.y) * 2 < self.height + other.height


class _Arrow(NamedTuple):
    start: tuple[float, float]
    end: tuple[float, float]
    allows: str
    both: bool

    def at(self, share: float) -> tuple[float, float]:
        (x1, y1), (x2, y2) = self.start, self.end
        return x1 + (x2 - x1) * share, y1 + (y2 - y1) * share


def deciding_text(found: "DecidingRule") -> str:
    """`web` allows: in tcp 80 from 0.0.0.0/0."""
    return f"`{found.security_group}` allows {rule_text(found.rule)}"


def network_fields() -> "Fields[NetworkAnswer]":
    return (
        Field("NETWORK", lambda each: each.name, flexible=True),
        Field("ADDRESSES", lambda each: each.cidr),
        Field("SUBNETS", lambda each: str(len(each.subnets)), right=True),
        Field("INSTANCES", lambda each: str(len(each.instances)), right=True),
        Field("PEERED WITH", lambda each: ", ".join(map(peer_text, _active(each))), flexible=True),
    )


def instance_fields() -> "Fields[NetworkInstance]":
    return (
        Field("INSTANCE", lambda each: each.instance, flexible=True),
        Field("ADDRESS", lambda each: each.address),
        Field("IPV6 ADDRESS", lambda each: each.ipv6_address),
    )


def peering_fields() -> "Fields[PeeringAnswer]":
    return (
        Field("PEER", peer_text, flexible=True),
        Field("STATE", lambda each: each.state),
        Field("ADDRESSES", lambda each: each.cidr),
    )


def peer_text(peering: "PeeringAnswer") -> str:
    """`vision/backend`, or with the id of a project that has not agreed yet."""
    return f"{peering.project or peering.project_id}/{peering.network}"


def _active(network: "NetworkAnswer") -> "list[PeeringAnswer]":
    return [each for each in network.peerings if each.state == "active"]


def fields() -> "Fields[ConnectionAnswer]":
    return (
        Field("FROM", lambda each: each.source, flexible=True),
        Field("TO", lambda each: each.target, flexible=True),
        Field("ALLOWED", lambda each: each.allows, flexible=True),
    )


def picture(graph: "NetworkGraphAnswer") -> str:
    """The graph as SVG: ends on a circle, an arrow for each connection. Equal ways there and back are one arrow."""
    radius = max(170.0, len(graph.ends) * 30.0)
    width, height = 2 * radius + NODE_WIDTH + 60, 2 * radius + NODE_HEIGHT + 90
    places = _places(graph.ends, radius, width / 2, height / 2 + 15)
    merged = _merged(graph.connections)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"'
        ' orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" fill="#57606a"/></marker></defs>',
        '<text x="16" y="24" font-size="15">Who can reach whom (lines without a label: everything)</text>',
    ]
    arrows = []
    for source, target, allows, both in merged:
        arrows.append(_between(places[source], places[target], allows, both))
        parts.append(_line(arrows[-1], source, target))
    for name, (x, y) in places.items():
        parts += _node(name, x, y)
    if len(arrows) <= LABELS_MAX:
        parts += _labels(arrows, [_Box(x, y, NODE_WIDTH, NODE_HEIGHT) for x, y in places.values()])
    return "\n".join([*parts, "</svg>", ""])


def _places(names: Sequence[str], radius: float, x: float, y: float) -> dict[str, tuple[float, float]]:
    turn = 2 * pi / max(len(names), 1)
    return {
        name: (x + radius * sin(turn * number), y - radius * cos(turn * number))
        for number, name in enumerate(names)
    }


def _merged(connections: "Sequence[ConnectionAnswer]") -> list[tuple[str, str, str, bool]]:
    there = {(each.source, each.target): each.allows for each in connections}
    found = []
    for (source, target), allows in there.items():
        both = there.get((target, source)) == allows
        if not both or source < target:
            found.append((source, target, allows, both))
    return found


def _between(start: tuple[float, float], end: tuple[float, float], allows: str, both: bool) -> _Arrow:
    length = hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    across = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
    aside = 0.0 if both else 7.0  # ways there and back lie beside each other
    return _Arrow(_edge_of(start, across, 1, aside), _edge_of(end, across, -1, aside), allows, both)


def _line(arrow: _Arrow, source: str, target: str) -> str:
    (x1, y1), (x2, y2) = arrow.start, arrow.end
    way = "and" if arrow.both else "to"
    colour = "#b0b7c0" if arrow.allows == EVERYTHING else "#0969da"
    first = ' marker-start="url(#arrow)"' if arrow.both else ""
    title = escape(f"{source} {way} {target}: {arrow.allows}")
    return (
        f'<path d="M{x1:.1f},{y1:.1f} L{x2:.1f},{y2:.1f}" stroke="{colour}" fill="none"{first}'
        f' marker-end="url(#arrow)"><title>{title}</title></path>'
    )


def _labels(arrows: Sequence[_Arrow], taken: list[_Box]) -> Iterator[str]:
    """What each arrow allows, near its start, where it covers no end and no other label if there is such a place."""
    for arrow in arrows:
        if arrow.allows == EVERYTHING:
            continue
        middle = 0.5 if arrow.both else 0.3
        shares = sorted((number / 40 for number in range(2, 39)), key=lambda share: abs(share - middle))
        width = len(arrow.allows) * LETTER_WIDTH
        boxes = [_Box(*arrow.at(share), width, LABEL_HEIGHT) for share in (middle, *shares)]
        free = (box for box in boxes if not any(box.covers(other) for other in taken))
        box = next(free, boxes[0])
        taken = [*taken, box]
        yield (
            f'<text x="{box.x:.1f}" y="{box.y + 3.5:.1f}" text-anchor="middle" font-size="10" stroke="white"'
            f' stroke-width="3" paint-order="stroke">{escape(arrow.allows)}</text>'
        )


def _edge_of(
    centre: tuple[float, float], across: tuple[float, float], sign: int, aside: float
) -> tuple[float, float]:
    """Where a line beside the centre of a node leaves its box."""
    beside = (-across[1] * aside, across[0] * aside)
    reaches = [
        (half - (1 if step > 0 else -1) * offset) / abs(step)
        for half, step, offset in (
            (NODE_WIDTH / 2, sign * across[0], beside[0]),
            (NODE_HEIGHT / 2, sign * across[1], beside[1]),
        )
        if abs(step) > 1e-9
    ]
    reach = sign * (min(reaches) + 3)
    return centre[0] + beside[0] + across[0] * reach, centre[1] + beside[1] + across[1] * reach


def _node(name: str, x: float, y: float) -> Iterator[str]:
    fill = "#ddf4ff" if name == INTERNET else "#f6f8fa"
    short = name if len(name) <= NAME_MAX else f"{name[: NAME_MAX - 1]}…"
    yield (
        f'<rect x="{x - NODE_WIDTH / 2:.1f}" y="{y - NODE_HEIGHT / 2:.1f}" width="{NODE_WIDTH}"'
        f' height="{NODE_HEIGHT}" rx="6" fill="{fill}" stroke="#57606a"><title>{escape(name)}</title></rect>'
    )
    yield f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(short)}</text>'
