"""`tera data`: files that a project stores once and that its instances and runs read."""

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.base.errors import Conflict
from teraflock.base.names import check_name
from teraflock.base.quantities import bytes_text, count_text
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.dataset_files import LocalDataset
from teraflock.cli.deletion import delete_named
from teraflock.cli.facts import write_facts
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option, yes_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.progress import ProgressLine
from teraflock.cli.table import write_list
from teraflock.words.dataset import facts, fields

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.dataset import DatasetAnswer

HELP: Final = """Store data once, and read it from any number of instances and runs.

A dataset is a file or a folder. It never changes: to store other content, use another name. Instances and runs that
name it find it read-only under $TERA_DATA/NAME. Own hosts keep one copy, which all their instances share. A dataset is
charged by its size until you delete it (`tera price`), and counts against the quota for data.

\b
Examples:
  tera data push imagenet ./imagenet
  tera run train.py --data imagenet
  tera launch --gpu A100 --data imagenet
  tera data delete imagenet
"""
PUSH_HELP: Final = """Store a file or a folder under a name.

Only what the server lacks is sent. An interrupted push continues where it stopped: run the command again. Links and
special files are left out.
"""
ROUNDS_MAX: Final = 1000
command = NamingGroup("command", help=HELP)


@command.command(help=PUSH_HELP)
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path))
@project_option
@json_option
def push(name: str, path: Path, project: str | None, as_json: bool) -> None:
    check_name(name, "a dataset")
    local = LocalDataset(path)
    with ProgressLine("Reading", "bytes") as shown:
        manifest = local.manifest(shown)
    if local.skipped:
        remark(f"Left out {count_text(local.skipped, 'link')}")
    with connected(project) as client:
        mark_simulated(client)
        digest = sha256(manifest).hexdigest()
        client.runs.upload(digest, manifest)
        made = _sent(client, client.datasets.create(name, digest), local)
    if as_json:
        write_json(made)
    else:
        size = f"{bytes_text(made.size_bytes)} in {count_text(made.files, 'file')}"
        remark(f"`{made.name}` is ready: {size}. Use it with `tera run --data {made.name}`")


@command.command("list", help="List datasets and their sizes.")
@in_project
def list_datasets(client: "Client", as_json: bool) -> None:
    found = client.datasets.list()
    mark_simulated(client)
    empty = "No data yet. Store some with `tera data push NAME PATH`"
    write_list(found, fields(SystemClock().now()), as_json=as_json, empty=empty)


@command.command(help="Show one dataset.")
@click.argument("name")
@in_project
def show(client: "Client", name: str, as_json: bool) -> None:
    found = client.datasets.get(name)
    mark_simulated(client)
    write_json(found) if as_json else write_facts(facts(found, SystemClock().now()))


@command.command(help="Delete a dataset that no instance uses.")
@click.argument("name")
@yes_option
@in_project
def delete(client: "Client", name: str, yes: bool, as_json: bool) -> None:
    delete_named(client.datasets, name, "dataset", yes=yes, as_json=as_json)


def _sent(client: "Client", dataset: "DatasetAnswer", local: LocalDataset) -> "DatasetAnswer":
    """Send the chunks that the server lacks, and complete the dataset."""
    with ProgressLine("Sending", "chunks") as shown:
        for _ in range(ROUNDS_MAX):
            lacks = client.datasets.missing(dataset.id)
            if not lacks.count:
                return client.datasets.complete(dataset.id)
            for number, chunk in enumerate(lacks.items):
                client.datasets.upload(dataset.id, chunk.digest, local.chunk(chunk.digest))
                shown(len(local.chunks) - lacks.count + number + 1, len(local.chunks))
    raise Conflict("The server still lacks parts of the data", hint="Run the command again")
