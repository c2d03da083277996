"""The picture of who can reach whom."""

import xml.etree.ElementTree as ET
from itertools import combinations, permutations

import pytest

from teraflock.wire.network import ConnectionAnswer, NetworkGraphAnswer
from teraflock.words.network import picture

SVG = "{http://www.w3.org/2000/svg}"
Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def graph(count: int) -> NetworkGraphAnswer:
    """The internet reaches some ports of everyone, and everyone reaches the others."""
    names = tuple(f"worker-{number}" for number in range(count))
    inside = [ConnectionAnswer(source=a, target=b, allows="everything") for a, b in permutations(names, 2)]
    ways_in = [ConnectionAnswer(source="internet", target=each, allows="tcp 22, 8888") for each in names]
    ways_out = [ConnectionAnswer(source=each, target="internet", allows="everything") for each in names]
    return NetworkGraphAnswer(ends=("internet", *names), connections=(*ways_in, *ways_out, *inside))


def boxes(drawn: ET.Element) -> list[Rectangle]:
    found = []
    for each in drawn.iter(f"{SVG}rect"):
        if each.get("rx"):
            left, top, width, height = (float(each.attrib[name]) for name in ("x", "y", "width", "height"))
            found.append((left, top, left + width, top + height))
    return found


def labels(drawn: ET.Element) -> list[Rectangle]:
    found = []
    for each in drawn.iter(f"{SVG}text"):
        if each.get("font-size") == "10":
            x, y, half = float(each.attrib["x"]), float(each.attrib["y"]), len(each.text or "") * 2.5
            found.append((x - half, y - 8, x + half, y + 1))
    return found


def touch(one: Rectangle, other: Rectangle) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("count", range(1, 8))
def test_labels_cover_no_end_and_no_other_label(count: int) -> None:
    drawn = ET.fromstring(picture(graph(count)))
    found, ends = labels(drawn), boxes(drawn)
    assert (len(found), len(ends)) == (count, count + 1)
    assert not [(label, end) for label in found for end in ends if touch(label, end)]
    assert not [pair for pair in combinations(found, 2) if touch(*pair)]


def test_a_crowded_picture_has_no_labels() -> None:
    assert labels(ET.fromstring(picture(graph(12)))) == []
