"""Our images on rented machines: what the first boot adds to the provider's own GPU image. Pure.

The Python packages of a recipe are installed in the same folder as on own hosts. The folder also sees the packages of
the provider's image, so what that has in a sufficient version, such as PyTorch, is not downloaded again.
"""

from functools import cache
from shlex import join, quote
from typing import Final

from teraflock.image.recipe import Python, read
from teraflock.instance.driver import Machine
from teraflock.instance.model import JUPYTER_PORT

JUPYTER: Final = "jupyter"
INSTALL: Final = """#!/bin/sh
set -e
export DEBIAN_FRONTEND=noninteractive PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
if ! python3 -c 'import ensurepip, venv' 2> /dev/null; then
    apt-get -q update
    apt-get -qy -o DPkg::Lock::Timeout=600 install python3-venv
fi
python3 -m venv --system-site-packages FOLDER
FOLDER/bin/python -m pip install -q PACKAGES
FOLDER/bin/python -c PROBE
"""
CHECKS: Final = {
    "pytorch": "import torch; assert torch.cuda.is_available() or NO_GPU, 'PyTorch does not see the GPUs'",
    "tensorflow": (
        "import tensorflow as tf;"
        " assert tf.config.list_physical_devices('GPU') or NO_GPU, 'TensorFlow does not see the GPUs'"
    ),
}
"""What must work when an image is installed. A driver that is too old for the packages shows here."""
JUPYTER_PROGRAM: Final = f"""#!/bin/sh
cd /root
export HOME=/root LANG=C.UTF-8 SHELL=/bin/bash JUPYTER_TOKEN_FILE=AT
exec FOLDER/bin/jupyter lab --ip=127.0.0.1 --port={JUPYTER_PORT} --ServerApp.port_retries=0 --no-browser --allow-root
"""
"""It listens inside the machine only. `tera jupyter` reaches it through SSH."""
JUPYTER_UNIT: Final = """[Unit]
Description=JupyterLab
After=network.target

[Service]
ExecStart=PROGRAM
Restart=on-failure
RestartSec=5

[Install]
WantedBy=multi-user.target
"""
JUPYTER_ANSWERS: Final = (
    "python3",
    "-c",
    f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{JUPYTER_PORT}/api', timeout=5)",
)
"""A command that succeeds when Jupyter answers."""


def installs(machine: Machine) -> bool:
    """Whether the first boot installs something for the machine's image."""
    return _python(machine) is not None


def install_program(machine: Machine) -> str:
    """The script that installs the machine's image. Empty: the provider's image is enough."""
    python = _python(machine)
    if python is None:
        return ""
    check = CHECKS.get(machine.recipe, "pass").replace("NO_GPU", str(not machine.gpus))
    text = INSTALL.replace("FOLDER", python.folder).replace("PACKAGES", join(python.packages))
    return text.replace("PROBE", quote(check))


def jupyter_program(machine: Machine, token_path: str) -> str:
    """The script that runs Jupyter. Empty: the machine has none."""
    python = _python(machine)
    if python is None or not machine.jupyter_token:
        return ""
    return JUPYTER_PROGRAM.replace("FOLDER", python.folder).replace("=AT\n", f"={token_path}\n")


def _python(machine: Machine) -> Python | None:
    """What the image needs. Jupyter is installed for whoever asks for it, whatever the image."""
    found = _python_of(machine.recipe) if machine.recipe else None
    return found or (_python_of(JUPYTER) if machine.jupyter_token else None)


@cache
def _python_of(recipe: str) -> Python | None:
    return read(recipe).python
