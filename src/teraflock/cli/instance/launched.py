"""What `tera launch` does after the launch: wait, say what to do next, and end with the right exit code."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from teraflock.cli.instance.follow import has_ended
from teraflock.cli.output import called, remark
from teraflock.cli.waiting import NotDone, wait_for
from teraflock.wire.instance import InstanceAnswer

if TYPE_CHECKING:
    from teraflock.client import Client

CUT_OFF: Final = 124
"""The exit code for a command that was stopped from outside, as in `timeout`."""


def waited_for(
    client: "Client", launched: Sequence[InstanceAnswer], seconds_max: float
) -> tuple[InstanceAnswer, ...]:
    ids = [each.id for each in launched]
    return tuple(
        wait_for(lambda: [client.instances.get(each) for each in ids], _is_up, seconds_max=seconds_max)
    )


def _is_up(instance: InstanceAnswer) -> bool:
    """Whether the instance runs and its user-data is done. With a command: whether the command has ended."""
    if instance.access == "command":
        return has_ended(instance)
    prepared = instance.user_data is None or instance.user_data.state == "done"
    return instance.state == "running" and instance.operation is None and prepared


def say_what_next(launched: Sequence[InstanceAnswer], *, waited: bool) -> None:
    first = launched[0]
    if not waited:
        remark(f"\nSee its progress with `tera show {first.name}`. `--wait` waits until it runs")
    elif first.jupyter:
        url = f"run `{called()} jupyter {first.name}`" if first.jupyter.through_ssh else first.jupyter.url
        remark(f"\nJupyter: {url}")
    elif first.access == "command":
        remark(f"\nSee its output with `tera logs {first.name}`")
    elif first.state == "running" and not first.simulated:
        remark(f"\nLog in: `{called()} ssh {first.name}`")


def end_as(launched: Sequence[InstanceAnswer]) -> None:
    """Exit with the exit code of the command or the user-data. With several instances, the first failure counts."""
    for each in launched:
        if each.user_data and each.user_data.exit_code:
            raise NotDone(
                f"The user-data of `{each.name}` ended with exit code {each.user_data.exit_code}",
                hint=f"See its output with `tera logs {each.name} --user-data`. The instance still exists",
            )
    commands = [each for each in launched if each.access == "command"]
    for each in commands:
        if each.exit_code is None:
            remark(f"The command of `{each.name}` was stopped before it finished{_by_time_limit(each)}")
    codes = [CUT_OFF if each.exit_code is None else each.exit_code for each in commands]
    if code := next(filter(None, codes), 0):
        raise SystemExit(code if 0 < code < 256 else 255)


def _by_time_limit(instance: InstanceAnswer) -> str:
    return " or reached its time limit" if instance.time_limit_seconds is not None else ""


def complain_of_failed(launched: Sequence[InstanceAnswer]) -> None:
    failed = [each for each in launched if each.state == "failed"]
    if failed:
        names = ", ".join(f"`{each.name}`" for each in failed)
        raise NotDone(
            f"{names} could not be launched: {failed[0].problem or 'the reason is unknown'}",
            hint=f"The failed instance was cleaned up. Remove the record with `tera delete --yes {failed[0].name}`",
        )
