"""`tera host install-driver`: NVIDIA's driver for the cards of this machine."""

from shlex import join as command_text
from typing import Final

import click

from teraflock.cli.options import json_option, yes_option
from teraflock.cli.output import remark, write_json

HELP: Final = """Install NVIDIA's driver for the cards of this machine. Run it as root, on Debian 12.

It installs Debian's own driver, and the kernel and headers that it is built for. The components `contrib`, `non-free`
and `non-free-firmware` must be among the sources of packages, and Secure Boot must be off. Reboot afterwards.

\b
Examples:
  tera host install-driver --dry-run    # show the commands only
  tera host install-driver
"""


@click.command("install-driver", help=HELP)
@click.option("--dry-run", is_flag=True, help="Print the commands, and run none of them.")
@yes_option
@json_option
def install_driver(dry_run: bool, yes: bool, as_json: bool) -> None:
    from teraflock.app.installation.inspection import inspected
    from teraflock.app.joining import nvidia
    from teraflock.cli.confirm import confirm
    from teraflock.cli.waiting import phases

    found = inspected()
    if not nvidia.needs_driver(found):
        state = (
            f"works: version {found.driver}"
            if found.driver
            else "is not needed: this machine has no NVIDIA card"
        )
        _say(as_json, (), f"The NVIDIA driver {state}")
        return
    ground = nvidia.read_ground()
    wanted = nvidia.commands(ground)
    if dry_run:
        _say(as_json, wanted, "")
        return
    if not yes:
        confirm("Install the NVIDIA driver and a kernel for it?", "Installing the NVIDIA driver")
    with phases() as line:
        nvidia.install(ground, line)
    _say(as_json, wanted, "The NVIDIA driver is installed. Reboot, then check it with `nvidia-smi`")


def _say(as_json: bool, commands: tuple[tuple[str, ...], ...], words: str) -> None:
    if as_json:
        write_json({"commands": commands, "result": words})
        return
    if words:
        remark(words)
        return
    for each in commands:
        click.echo(command_text(each))
