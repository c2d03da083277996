"""Runs commands and Python scripts in a guest through the driver."""

from teraflock.drivers.lxd.driver import Lxd
from teraflock.instance.driver import Machine


def ran(driver: Lxd, machine: Machine, *command: str, stdin: bytes = b"") -> str:
    answer = driver.run(machine.handle, command, stdin=stdin, seconds_max=120)
    return (answer.stdout + answer.stderr).decode().strip()


def python(driver: Lxd, machine: Machine, script: str, *words: str) -> str:
    return ran(driver, machine, "python3", "-", *words, stdin=script.encode())
