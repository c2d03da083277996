"""Which part of a run is one step. Written as words: `f` forward, `b` backward, `s` step, `l8` a loaded batch of 8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.workload.tracing.steps import (
    BACKWARD,
    EVALUATION,
    FORWARD,
    GRADIENT,
    LOAD,
    STEP,
    Happening,
    Window,
    backward_passes_of,
    counted,
    hand_updated_window,
    inference_window,
    samples_of,
    training_window,
)

KINDS = {"f": FORWARD, "a": FORWARD, "b": BACKWARD, "s": STEP, "l": LOAD, "e": EVALUATION, "g": GRADIENT}


def run_of(text: str) -> list[Happening]:
    """`f2:8` is a forward pass of module 2 with 8 samples, `a2:8` one after its results were read; events are ten
    apart."""
    run = []
    for place, word in enumerate(text.split()):
        name, _, samples = word.partition(":")
        run.append(
            Happening(
                KINDS[name[0]],
                int(name[1:] or 1),
                place * 10,
                int(samples or 0),
                is_answer=name.startswith("a"),
            )
        )
    return run


def found(text: str, optimizers: int = 1) -> tuple[list[Happening], Window]:
    """The run as far as it goes until a step is known."""
    run = run_of(text)
    for end, each in enumerate(run, 1):
        if each.kind == STEP:
            window = training_window(run[:end], optimizers)
            if window is not None:
                return run[:end], window
    pytest.fail("no step was found")


@pytest.mark.parametrize(
    ("text", "optimizers", "samples", "backwards"),
    [
        ("f:8 b s f:8 b s", 1, 8, 1),
        ("f:8 b f:8 b f:8 b f:8 b s " * 2, 1, 32, 4),  # gradient accumulation
        ("l:8 f:8 b l:8 f:8 b s " * 2, 1, 16, 2),
        ("l:8 l:8 f:8 b f:8 b s " * 2, 1, 16, 2),  # both batches are loaded before
        ("f1:64 b f2:64 f1:64 b s1 f1:64 b s2 " * 2, 2, 64, 3),  # a GAN: discriminator, then generator
        ("f1:64 f2:64 b s1 f2:64 f1:64 b s2 " * 2, 2, 64, 2),
        (
            "f1:64 b s1 " * 5 + "f2:64 b s2 " + "f1:64 b s1 " * 5 + "f2:64 b s2",
            2,
            320,
            6,
        ),  # five critic steps
        ("f:8 b s1 s2 " * 2, 2, 8, 1),  # two optimizers share the parameters
        ("e:99 e:99 f:8 b s e:99 f:8 b s", 1, 8, 1),  # evaluation before and in between
        ("f1:8 f2:8 b s " * 2, 1, 8, 1),  # an encoder and a decoder
        ("f:16 a:16 a:16 b s " * 2, 1, 48, 1),  # a rollout: an environment answers each action
        ("f1:16 a2:16 a1:16 a2:16 b s " * 2, 1, 32, 1),  # with an actor and a critic
        ("f:16 f:16 b s " * 2, 1, 16, 1),  # two views of a batch
        ("f:1 b f:8 b s f:8 b s f:8 b s", 1, 8, 1),  # the first step is unlike the others
    ],
)
def test_a_step_is_the_pattern_that_comes_twice(
    text: str, optimizers: int, samples: int, backwards: int
) -> None:
    run, window = found(text, optimizers)
    assert samples_of(run, window) == samples
    assert backward_passes_of(run, window) == backwards
    assert window.end == run[-1].at


def test_one_step_is_not_enough() -> None:
    assert training_window(run_of("f:8 b s"), 1) is None


def test_an_optimizer_that_has_not_stepped_yet_is_waited_for() -> None:
    assert training_window(run_of("f1:8 b s1 f1:8 b s1 f1:8 b s1"), 2) is None


def test_an_unsteady_loop_ends_with_its_last_step() -> None:
    text = " ".join(f"{'f:8 b ' * count}s" for count in range(1, 12))
    run, window = found(text)
    assert window.start < window.end == run[-1].at


@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 3), st.integers(1, 512))
def test_any_accumulation_and_any_number_of_evaluations_gives_one_step(
    accumulation: int, optimizers: int, evaluations: int, batch: int
) -> None:
    step = "e:7 " * evaluations + f"f:{batch} b " * accumulation
    step += " ".join(f"s{number}" for number in range(optimizers))
    run, window = found(" ".join([step] * 3), optimizers)
    assert samples_of(run, window) == accumulation * batch
    assert backward_passes_of(run, window) == accumulation


def test_a_loop_that_updates_by_hand_is_cut_at_its_forward_passes() -> None:
    run = run_of("f:20 b f:20 b f:20")
    window = hand_updated_window(run)
    assert window is not None
    assert (window.start, window.end) == (20, 40)
    assert samples_of(run, window) == 20


def test_a_loop_without_modules_is_cut_at_its_backward_passes() -> None:
    run = run_of("b:50 b:50 b:50")
    window = hand_updated_window(run)
    assert window is not None
    assert samples_of(run, window) == 50
    assert backward_passes_of(run, window) == 1
    assert window.end == run[-1].at


@pytest.mark.parametrize("text", ["b:50 s b:50 s", "l:50 b:10 s l:50 b:10 s"])
def test_an_optimizer_of_plain_tensors_has_the_samples_of_its_loader_or_its_backward_pass(text: str) -> None:
    run, window = found(text)
    assert samples_of(run, window) == 50


def test_inference_is_told_by_its_repeated_forward_pass() -> None:
    run = run_of("e:16 e:16 e:16")
    window = inference_window(run, 99)
    assert window is not None
    assert (window.start, window.end) == (10, 20)
    assert samples_of(run, window) == 16


def test_a_pipeline_that_runs_once_is_one_step() -> None:
    window = inference_window(run_of("f1:2 f2:2 f2:2 f2:2 f3:2"), 99)
    assert window is not None
    assert (window.start, window.end) == (0, 99)


@given(st.lists(st.sampled_from(["f:8", "s", "g", "l:8", "b"]), max_size=12))
def test_gradients_count_as_backward_passes_only_where_there_are_no_others(words: list[str]) -> None:
    run = run_of(" ".join(words))
    kinds = [each.kind for each in counted(run)]
    if "b" in words:
        assert counted(run) == run
    else:
        assert kinds == [BACKWARD if each.kind == GRADIENT else each.kind for each in run]
