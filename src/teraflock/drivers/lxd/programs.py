"""The programs that a guest runs by itself: its command and its user data.

The guest records exit codes under its own machine id, so that a copy of its disk in another guest does not count as
that guest's own result.
"""

from typing import Final

from teraflock.drivers.lxd import files, guest, names
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.instance.driver import CommandState

COMMAND_LOG: Final = "/var/log/teraflock/command.log"
USER_DATA_LOG: Final = "/var/log/teraflock/user-data.log"
LOG_BYTES_MAX: Final = 1 << 16
EXIT_BYTES_MAX: Final = 16


def command_state(engine: LxdClient, instance_id: str) -> CommandState | None:
    return _state(engine, instance_id, guest.COMMAND, "command.exit", COMMAND_LOG)


def user_data_state(engine: LxdClient, instance_id: str) -> CommandState | None:
    return _state(engine, instance_id, guest.USER_DATA, "first-boot.exit", USER_DATA_LOG)


def forget_command(engine: LxdClient, instance_id: str) -> None:
    """Delete the results of the command's last run, so that the next start runs it again."""
    for path in (_path(instance_id, "command.exit"), COMMAND_LOG):
        files.remove(engine, names.guest(instance_id), path)


def _state(engine: LxdClient, instance_id: str, key: str, exit_name: str, log: str) -> CommandState | None:
    """Return the state of the program stored under one key of the configuration; None without a program."""
    name = names.guest(instance_id)
    if not engine.get("instances", name)["config"].get(key):
        return None
    exit_code = files.tail(engine, name, _path(instance_id, exit_name), EXIT_BYTES_MAX)
    return CommandState(
        exit_code=guest.exit_code_from(exit_code),
        log=files.tail(engine, name, log, LOG_BYTES_MAX),
    )


def _path(instance_id: str, name: str) -> str:
    return f"/var/lib/teraflock/{names.machine_id(instance_id)}/{name}"
