"""The placement benchmark: lists are read as documented, rules keep to capacity, and scores are as defined."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bench.placement import arrivals, measure
from bench.placement_cluster import CARD, Classes, Cluster, Node, Pod, Rule, State
from bench.placement_lists import read_nodes, read_pods
from bench.placement_peers import BestFit, Fgd
from bench.placement_rules import CPU_WEIGHT, RAM_WEIGHT, WHOLE_WEIGHT, LeastWaste
from bench.processes import Fault
from hypothesis import given, settings
from hypothesis import strategies as st

from teraflock.fleet.room import stranded

MODELS = ("A", "B")
RULES: dict[str, Callable[[Classes], Rule]] = {
    "ours": lambda classes: LeastWaste(classes, 4),
    "best fit": lambda classes: BestFit(classes, (64, 64, 4)),
    "fgd": Fgd,
}

nodes = st.lists(
    st.builds(Node, st.integers(0, 64), st.integers(0, 64), st.integers(0, 4), st.sampled_from(MODELS)),
    min_size=1,
    max_size=4,
)
pods = st.lists(
    st.one_of(
        st.builds(Pod, st.integers(0, 16), st.integers(0, 16), st.just(0), st.just(0)),
        st.builds(
            Pod,
            st.integers(0, 16),
            st.integers(0, 16),
            st.just(1),
            st.integers(1, CARD),
            st.sampled_from([(), ("A",), ("A", "B"), ("C",)]),
        ),
        st.builds(Pod, st.integers(0, 16), st.integers(0, 16), st.integers(2, 4), st.just(CARD)),
    ),
    min_size=1,
    max_size=12,
)


def fits(state: State, pod: Pod) -> bool:
    """Whether a pod fits, by trying each part."""
    if pod.cpu > state.cpu or pod.ram > state.ram:
        return False
    if pod.models and MODELS[state.model] not in pod.models:
        return False
    return sum(free >= pod.share for free in state.cards) >= pod.cards


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=30)
@given(there=nodes, asked=pods)
def test_a_pod_is_placed_exactly_if_it_fits_somewhere(name: str, there: list[Node], asked: list[Pod]) -> None:
    classes = Classes(asked, MODELS)
    cluster = Cluster(there, classes, MODELS, RULES[name](classes))
    for number in classes.of_pods:
        pod = classes.all[number]
        able = [fits(state, pod) for state in cluster.states]
        free = [state.free for state in cluster.states]
        node = cluster.place(number)
        assert (node is not None) == any(able)
        if node is not None:
            assert able[node]
            assert cluster.states[node].free == free[node] - pod.demand
            assert min([*cluster.states[node].cards, cluster.states[node].cpu, cluster.states[node].ram]) >= 0


even_pods = st.lists(
    st.builds(
        lambda cpu, ram, cards, share: Pod(cpu, ram, cards, share if cards == 1 else CARD * min(cards, 1)),
        st.integers(8, 16),
        st.integers(8, 16),
        st.integers(0, 3),
        st.integers(500, CARD),
    ),
    min_size=1,
    max_size=8,
)
"""Needs of 8 to 32 per card, so that the tables, in steps of at most 0.02, are exact to about 0.2 %."""


def waste(state: State, classes: Classes) -> float:
    """The waste of a node as `LeastWaste` defines it, computed class by class."""
    users = [(pod, n) for pod, n in zip(classes.all, classes.counts.tolist(), strict=True) if pod.demand]
    count, demand = sum(n for _, n in users), sum(n * pod.demand for pod, n in users)
    total = 0.0
    for pod, n in users:
        cards = pod.demand / CARD
        total += n / count * CPU_WEIGHT * stranded(state.free, state.cpu * CARD, pod.cpu / cards)
        total += n / count * RAM_WEIGHT * stranded(state.free, state.ram * CARD, pod.ram / cards)
        total += n / count * sum(free for free in state.cards if free < CARD and free < pod.share)
        if pod.cards > state.whole:
            total += n * pod.demand / demand * WHOLE_WEIGHT * CARD * state.whole
    return total


@settings(max_examples=30)
@given(there=nodes, asked=even_pods)
def test_a_score_is_the_growth_of_the_waste(there: list[Node], asked: list[Pod]) -> None:
    classes = Classes(asked, MODELS)
    if not classes.demand.any():
        return
    rule = LeastWaste(classes, 4)
    for node in there:
        state = State(node.cpu, node.ram, [CARD] * node.cards, MODELS.index(node.model))
        for number, pod in enumerate(classes.all):
            if not fits(state, pod):
                assert rule.scores(state)[number] == np.inf
                continue
            cards = sorted(state.cards, reverse=True)
            for card in range(pod.cards):
                cards[card] -= pod.share
            after = State(state.cpu - pod.cpu, state.ram - pod.ram, cards, state.model)
            grown = waste(after, classes) - waste(state, classes)
            assert rule.scores(state)[number] == pytest.approx(grown, abs=node.cards * CARD * 0.03 + 1e-6)


def test_lists_may_lack_columns_and_name_models(tmp_path: Path) -> None:
    listed = tmp_path / "pods.csv"
    listed.write_text("name,cpu_milli,num_gpu,gpu_milli,gpu_spec\na,500,1,,V100|T4\nb,,0,0,\nc,1,2,1000,\n")
    assert read_pods(listed) == [
        Pod(500, 0, 1, CARD, ("T4", "V100")),
        Pod(0, 0, 0, 0),
        Pod(1, 0, 2, CARD),
    ]
    listed.write_text("sn,cpu_milli,memory_mib,gpu,model\nx,1000,2048,2,T4\n")
    assert read_nodes(listed) == [Node(1000, 2048, 2, "T4")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("num_gpu\n", "no rows"),
        ("num_gpu\nmany\n", "row 2: `num_gpu` is not a number"),
        ("num_gpu,gpu_milli\n1,1001\n", "a card has 1000"),
        ("cpu_milli\n-1\n", "negative"),
        ("cpu_milli\nnan\n", "not a number"),
    ],
)
def test_bad_lists_are_refused_with_their_row(tmp_path: Path, text: str, problem: str) -> None:
    listed = tmp_path / "pods.csv"
    listed.write_text(text)
    with pytest.raises(Fault, match=problem):
        read_pods(listed)


def test_a_list_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="missing.csv cannot be read"):
        read_pods(tmp_path / "missing.csv")


def test_arrivals_end_with_the_pod_that_completes_the_demand() -> None:
    classes = Classes([Pod(1, 1, 1, 400), Pod(1, 1, 1, CARD), Pod(1, 1, 0, 0)], MODELS)
    order = arrivals(classes, 10 * CARD, 42)
    assert classes.demand[order].sum() >= 10 * CARD > classes.demand[order[:-1]].sum()
    assert order == arrivals(classes, 10 * CARD, 42) != arrivals(classes, 10 * CARD, 43)


def test_the_benchmark_shows_all_rules_side_by_side(tmp_path: Path) -> None:
    there, asked = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    there.write_text("cpu_milli,memory_mib,gpu,model\n8000,8000,2,T4\n8000,8000,2,T4\n")
    asked.write_text("cpu_milli,memory_mib,num_gpu,gpu_milli\n1000,1000,1,500\n1000,1000,2,1000\n")
    sections = list(measure(there, asked))
    assert [section.title.rpartition(": ")[2] for section in sections] == ["Teraflock", "Best fit", "FGD"]
    assert all(0 < section.figures[0].median <= 100 for section in sections)
    assert "Not measured" in next(measure()).notes[0]
