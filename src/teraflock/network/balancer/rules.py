"""What a balancer may look like, and what the firewall allows it. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from teraflock.base.errors import BadInput, Refused
from teraflock.network.balancer.model import (
    HTTP_CHECK,
    TCP_CHECK,
    BackendState,
    Balancer,
    BalancerHost,
    BalancerId,
    BalancerPlace,
    BalancerSeen,
    Target,
)
from teraflock.network.rules import number_of, subnet
from teraflock.network.security_group.model import PREFIX as GROUP_PREFIX
from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule
from teraflock.network.security_group.rules import EVERYWHERE

BALANCERS_MAX: Final = 20
BACKENDS_MAX: Final = 64
"""Limits per project and per balancer: they bound the checks that one tenant causes."""
CHECK_SECONDS_MIN: Final = 2
CHECK_SECONDS_MAX: Final = 300
LOST_AFTER: Final = timedelta(minutes=5)
"""A host that reboots is back sooner."""
PATH: Final = re.compile(r"/[A-Za-z0-9._~/%=&?:@+,-]{0,199}")
"""Paths of checks. None of these characters has a meaning in the configuration of HAProxy."""


def check_port(port: int, option: str) -> None:
    if not 1 <= port <= 65_535:
        raise BadInput(f"Port `{port}` is out of range", hint=f"Write `{option}` as a number from 1 to 65535")


def check_health_check(text: str) -> None:
    if text == TCP_CHECK or (text.startswith(HTTP_CHECK) and PATH.fullmatch(text.removeprefix(HTTP_CHECK))):
        return
    raise BadInput(
        f"`{text[:80]}` is not a health check",
        hint="Use `tcp`, or `http:` and a path such as `http:/health`, up to 200 plain characters",
    )


def check_check_seconds(seconds: int) -> None:
    if not CHECK_SECONDS_MIN <= seconds <= CHECK_SECONDS_MAX:
        raise BadInput(
            f"An interval of {seconds} seconds is out of range",
            hint=f"Use {CHECK_SECONDS_MIN} to {CHECK_SECONDS_MAX} seconds",
        )


def is_reachable(site: str, other: str, linked: Collection[str]) -> bool:
    """Whether a balancer at one site reaches instances at another. `linked` sites share the networks of projects."""
    return site == other or (site in linked and other in linked)


def check_targets(targets: Iterable[Target], site: str, linked: Collection[str] = ()) -> None:
    """All backends must be in the network that the balancer is in."""
    for each in targets:
        if each.address is None:
            raise Refused(
                f"`{each.name}` has no address in the project's network",
                hint="Balance instances on own hosts. A rented machine has its own address",
            )
        if not is_reachable(site, each.site, linked):
            raise Refused(
                f"`{each.name}` runs at the site `{each.site}`, and the balancer at `{site}`",
                hint="The networks of these sites are not linked. Create a balancer for each site",
            )


def check_networks(targets: Iterable[Target], near: Collection[int]) -> None:
    """`near`: the numbers of the network `default`, where balancers are, and of those that are peered with it."""
    for each in targets:
        if each.address is not None and number_of(each.address) not in near:
            raise Refused(
                f"`{each.name}` is not in the network `default`, and its network is not peered with `default`",
                hint="Peer them: `tera network peer default --with NETWORK`. Or launch it with `--network default`",
            )


def check_count(count: int) -> None:
    if count > BACKENDS_MAX:
        raise Refused(
            f"A balancer can have at most {BACKENDS_MAX} backends; this would be {count}",
            hint="Remove one first, or create another balancer",
        )


def label_from(text: str) -> tuple[str, str]:
    key, is_pair, value = text.partition("=")
    if text and not (key and is_pair):
        raise BadInput(
            f"`{text[:80]}` is not a label", hint="Write `label=KEY=VALUE`, such as `label=app=web`"
        )
    return key, value


def must_move(balancer: Balancer, host: BalancerHost | None, *, now: datetime) -> bool:
    """Whether a balancer's host is gone, was lost for `LOST_AFTER`, or is drained: at its deadline, if it has one."""
    if balancer.ending:
        return False
    if host is None:
        return True
    if host.state == "draining":
        return host.drain_at is None or host.drain_at <= now
    return host.state == "away" and host.seen_at < now - LOST_AFTER


def other_host(
    balancer: Balancer, hosts: Iterable[BalancerHost], targets: Sequence[Target], linked: Collection[str]
) -> BalancerHost | None:
    """The host to move to: one that reaches the backends. The one with most of them, so that packets stay there."""
    there = Counter(each.host_id for each in targets)
    fit = [
        each
        for each in hosts
        if each.state == "ready"
        and each.id != balancer.host_id
        and is_reachable(balancer.site, each.site, linked)
    ]
    return min(fit, key=lambda each: (-there[each.id], each.site != balancer.site, each.id), default=None)


def group_of(id: BalancerId) -> GroupId:
    """The firewall's own group of a balancer. No tenant can see or change it."""
    return GroupId(GROUP_PREFIX + id.replace("_", ""))


def firewall_rules(balancer: Balancer, place: BalancerPlace, targets: Iterable[str]) -> tuple[Rule, ...]:
    """Let the project in, and everybody if the port is published or a public address leads to it. Let the balancer
    reach its backends only."""
    is_open = balancer.published is not None or place.is_public
    inside = EVERYWHERE if is_open else str(subnet(place.network))
    rules = [_rule(Direction.IN, balancer.port, inside)]
    rules += [_rule(Direction.OUT, balancer.target_port, f"{address}/32") for address in targets]
    return tuple(sorted(rules))


def _rule(direction: Direction, port: int, peer: str) -> Rule:
    return Rule(direction=direction, protocol=Protocol.TCP, port_first=port, port_last=port, peer=peer)


def backends_up(seen: BalancerSeen) -> int:
    return sum(each.state == BackendState.UP for each in seen.backends)
