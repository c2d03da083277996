"""A command in a warm process gives the same result as one that is started anew."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.story import warm
from tests.story.tera import SECONDS_MAX, Tera

COMMANDS: tuple[list[str], ...] = (
    ["gpus", "--json"],
    ["offers", "--limit", "2"],
    ["--version"],
    ["offers", "--gpu", "A1OO"],
    ["nope"],
    [],
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_warm_and_cold_commands_give_the_same_result(tera: Tera, words: list[str]) -> None:
    environment = tera.environment(80)
    assert warm.suits(environment)
    cold = subprocess.run(
        tera.command(*words), env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    done = warm.run(words, environment, seconds_max=SECONDS_MAX)
    assert (done.returncode, done.stdout, done.stderr) == (cold.returncode, cold.stdout, cold.stderr)


def test_concurrent_warm_commands_have_their_own_environment(tera: Tera) -> None:
    def width(columns: int) -> int:
        done = warm.run(["gpus"], tera.environment(columns), seconds_max=SECONDS_MAX)
        return max(map(len, done.stdout.decode().splitlines()))

    with ThreadPoolExecutor(3) as threads:
        widths = list(threads.map(width, (60, 80, 120)))
    assert widths[0] <= 60 < widths[2] <= 120
    assert widths[1] <= 80


def test_a_command_that_takes_too_long_is_killed(tera: Tera) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(["gpus"], tera.environment(80), seconds_max=1e-6)


@pytest.mark.parametrize("name", ["PYTHONIOENCODING", "LC_ALL"])
def test_other_settings_of_python_need_a_cold_command(tera: Tera, name: str) -> None:
    assert not warm.suits({**tera.environment(80), name: "other"})
