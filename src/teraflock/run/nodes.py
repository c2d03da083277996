"""The nodes of a run: instances that run its command at the same time. Pure.

A run with several nodes is a gang. Its instances are launched together or not at all. A node that is lost is replaced,
and the next attempt starts on all nodes from the checkpoints of node 0.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from teraflock.instance.lookup import is_at_rest
from teraflock.instance.model import Instance
from teraflock.run.guest import CHECKPOINTS, WORK, GuestState, folder_of
from teraflock.run.model import Run, RunNode
from teraflock.run.rules import again, has_setup, instance_verdict, lost, moved
from teraflock.run.states import RunPhase, RunWanted

PORT: Final = 29_500
"""Where node 0 waits for the others: the usual port of torchrun."""
INTERFACE: Final = "eth0"


def nodes_of(run: Run) -> tuple[RunNode, ...]:
    """The nodes of this attempt by their number. None before the launch."""
    first = RunNode(instance_id=run.instance_id, log_guest_bytes=run.log_guest_bytes, log_bytes=run.log_bytes)
    return (first, *run.others) if run.instance_id else ()


def with_node(run: Run, number: int, node: RunNode) -> Run:
    if number == 0:
        return replace(run, log_guest_bytes=node.log_guest_bytes, log_bytes=node.log_bytes)
    others = list(run.others)
    others[number - 1] = node
    return replace(run, others=tuple(others))


def with_fresh_logs(run: Run) -> Run:
    """What follows writes a log of its own in each guest."""
    others = tuple(replace(each, log_guest_bytes=0) for each in run.others)
    return replace(run, log_guest_bytes=0, others=others)


def verdict(run: Run, instances: Sequence[Instance | None], now: datetime) -> Run | None:
    """The run after a look at its instances. None: all of them are there, or will be."""
    found = [instance_verdict(run, each, now) for each in instances]
    if len(instances) < run.spec.nodes:
        found.append(lost(run, "One of its instances is gone", now))
    changed = [each for each in found if each is not None]
    return next((each for each in changed if each.phase == RunPhase.ENDING), next(iter(changed), None))


def survivors(run: Run, instances: Sequence[Instance | None], now: datetime) -> dict[int, Instance]:
    """The nodes that can go on when another one is lost."""
    return {
        number: each
        for number, each in enumerate(instances)
        if each is not None and is_at_rest(each) and instance_verdict(run, each, now) is None
    }


def may_restart(run: Run) -> bool:
    """Whether the command may start again on the instances that it has. Those of a gang get the same checkpoints, so
    their folder is emptied before: it must be one that is only for them."""
    folder = folder_of(run.spec.checkpoints, CHECKPOINTS)
    is_ours = run.spec.nodes == 1 or folder == CHECKPOINTS or folder.startswith(f"{WORK}/")
    is_wanted = run.wanted != RunWanted.CANCELLED and run.attempt < run.spec.attempts_max
    return is_ours and is_wanted and run.phase == RunPhase.RUNNING


def may_lose_disks(run: Run) -> bool:
    """Whether the command can start again where an instance got a new disk: a gang is copied everything again."""
    return run.spec.nodes > 1 and not has_setup(run.spec) and may_restart(run)


def with_replaced(run: Run, new: Mapping[int, str], now: datetime) -> Run:
    """The next attempt on the same instances, with new ones in the place of some."""
    after = with_fresh_logs(again(moved(run, RunPhase.STARTING, now)))
    others = tuple(
        replace(each, instance_id=new.get(number, each.instance_id))
        for number, each in enumerate(after.others, start=1)
    )
    first = new.get(0, run.instance_id)
    return replace(after, instance_id=first, others=others, instances=(*run.instances, *new.values()))


def failed_nodes(seen: Sequence[GuestState]) -> list[int]:
    """The nodes whose command ended with an error."""
    return [number for number, each in enumerate(seen) if each.state == "ended" and each.exit_code]


def failure_text(numbers: Sequence[int], code: int | None) -> str:
    which = f"node {numbers[0]}" if len(numbers) == 1 else f"nodes {', '.join(map(str, numbers))}"
    return f"The command ended with exit code {code} on {which}"


def environment(number: int, addresses: Sequence[str], gpus: int) -> dict[str, str]:
    """The variables of torchrun for one process on each node, and those from which torchrun itself reads its options
    (`PET_…`). Empty for a run with one node."""
    if len(addresses) == 1:
        return {}
    count, master, rank, port = str(len(addresses)), addresses[0], str(number), str(PORT)
    return {
        "MASTER_ADDR": master, "MASTER_PORT": port, "RANK": rank, "NODE_RANK": rank, "WORLD_SIZE": count,
        "NNODES": count, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "PET_NNODES": count, "PET_NODE_RANK": rank,
        "PET_MASTER_ADDR": master, "PET_MASTER_PORT": port, "PET_NPROC_PER_NODE": str(max(1, gpus)),
        "NCCL_SOCKET_IFNAME": INTERFACE, "GLOO_SOCKET_IFNAME": INTERFACE, "TERA_NODES": ",".join(addresses),
    }  # fmt: skip
