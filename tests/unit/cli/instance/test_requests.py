"""The requests that commands build from their options."""

from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.instance.answers import CARDS, CPUS, instance

from teraflock.base.errors import BadInput, BrokenSource, Refused, UnknownName
from teraflock.cli.instance import plan_file
from teraflock.cli.instance.launch import read_user_data, request_from
from teraflock.cli.instance.resize import changes_cards
from teraflock.cli.quota import limits_from
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.quota import QuotaShape
from teraflock.wire.shape import NamedShapeAnswer, ShapeRequest

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKeyOfTheUser ada"
NOTHING: dict[str, Any] = {
    "name": None, "gpu": "", "gpus": None, "shape": "", "vcpus": None, "ram": None, "disk": None, "image": "base",
    "access": None, "line": None, "words": (), "user_data": None, "keys": (KEY,), "labels": (), "environment": (),
    "instances": 1, "spot": False, "host": None, "plan": None, "choice": None,
    "shell": False, "time_limit": None, "removed": False, "graphics": False,
    "provider": "", "offer": None, "burst": False, "mode": None, "site": "", "type": "", "region": "", "zone": "",
    "bid": None, "max_price": None, "restart_policy": None,
    "security_groups": (),
    "networks": (),
    "subnets": (),
    "addresses": (),
    "data": (),
    "volumes": (),
    "on": (), "not_with": (), "spread": None, "pack": False, "together": False, "queue": False, "priority": 0,
}  # fmt: skip


def asked(**words: Any) -> LaunchRequest:
    return request_from({**NOTHING, **words})


def test_launch_without_options_leaves_defaults_to_the_server() -> None:
    assert asked() == LaunchRequest(authorized_keys=(KEY,))


def test_wishes_about_hosts_are_sent_and_checked() -> None:
    request = asked(on=("zone=a",), not_with=("web", "app=db"), together=True, queue=True, priority=3)
    assert (dict(request.on), request.not_with) == ({"zone": "a"}, ("web", "app=db"))
    assert (request.together, request.queue, request.priority) == (True, True, 3)
    for wrong in ({"priority": 3}, {"pack": True, "spread": "zone"}, {"on": ("zone",)}):
        with pytest.raises(BadInput):
            asked(**wrong)


def test_all_options_are_sent(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("#!/bin/sh\n")
    size = {"gpu": "V100", "gpus": 2, "vcpus": 8, "ram": "64", "disk": "1TB"}
    request = asked(
        name="web", labels=("a=b",), environment=("C=d",), user_data=str(data), host="lab1", **size
    )
    assert request.shape == ShapeRequest(gpu="V100", gpus=2, vcpus=8, ram_bytes=64 << 30, disk_bytes=1 << 40)
    assert (request.name, dict(request.labels), dict(request.environment)) == ("web", {"a": "b"}, {"C": "d"})
    assert (request.user_data, request.host, request.access) == ("#!/bin/sh\n", "lab1", "ssh")


def test_a_rented_machine_is_asked_for() -> None:
    request = asked(
        site="sky",
        type="gpu",
        region="east",
        mode="bid",
        bid="0.35",
        max_price="1.2",
        restart_policy="elsewhere",
    )
    assert (request.site, request.type, request.region, request.mode) == ("sky", "gpu", "east", "bid")
    assert (request.bid_micros_per_hour, request.max_price_micros_per_hour) == (350_000, 1_200_000)
    assert request.restart_policy == "elsewhere"


def test_spot_is_an_alias_of_its_mode() -> None:
    assert asked(spot=True).mode == asked(mode="spot").mode == asked(spot=True, mode="spot").mode == "spot"
    with pytest.raises(BadInput, match="contradict"):
        asked(spot=True, mode="on-demand")


def test_a_card_alone_is_one_card() -> None:
    assert asked(gpu="A100").shape == ShapeRequest(gpu="A100", gpus=1)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ({"line": "python3 train.py --name 'a b'"}, ("python3", "train.py", "--name", "a b")),
        ({"words": ("sh", "-c", "a && b")}, ("sh", "-c", "a && b")),
        ({"line": "a && echo $B", "shell": True}, ("sh", "-c", "a && echo $B")),
    ],
)
def test_command_sets_the_access(words: dict[str, Any], command: tuple[str, ...]) -> None:
    request = asked(**words)
    assert (request.access, request.command) == ("command", command)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"name": "a/b"}, "`a/b` is not a valid name"),
        ({"name": ""}, "is not a valid name"),
        ({"gpu": "V100", "gpus": 0}, "contradict each other"),
        ({"ram": "1MB"}, "`--ram 1MB` is too small"),
        ({"disk": "much"}, "`much` is not an amount of memory"),
        ({"disk": "999999TB"}, "is too large"),
        ({"access": "command"}, "needs a command"),
        ({"access": "ssh", "line": "true"}, "cannot run a command"),
        ({"line": "true", "words": ("false",)}, "cannot be combined"),
        ({"line": " "}, "`--command` is empty"),
        ({"line": "", "shell": True}, "`--command` is empty"),
        ({"words": ("true",), "shell": True}, "`--shell` needs `--command`"),
        ({"removed": True}, "`--rm` needs a command or `--time-limit`"),
        ({"time_limit": "2"}, "`--time-limit 2` is not a duration"),
        ({"time_limit": "0s"}, "`--time-limit 0s` is out of range"),
        ({"time_limit": "400d"}, "`--time-limit 400d` is out of range"),
        ({"choice": 1}, "`--choice` needs `--plan`"),
        ({"plan": "x.json", "gpu": "V100"}, "`--plan` already names the GPUs"),
        ({"plan": "/nowhere/x.json"}, "cannot be read"),
        ({"user_data": "/nowhere/x"}, "cannot be read"),
        ({"keys": ("/nowhere/x",)}, "cannot be read"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_contradictory_input_is_refused(words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        asked(**words)


def test_graphics_are_sent() -> None:
    assert not asked().graphics
    assert asked(graphics=True).graphics


def test_time_limit_and_rm_are_sent() -> None:
    request = asked(words=("true",), time_limit="1h30m", removed=True)
    assert (request.time_limit_seconds, request.delete_when_done) == (5400, True)
    assert asked(time_limit="1d", removed=True).delete_when_done


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("echo $FOO; false", "$"),
        ("a && b", "&"),
        ("a | b", "|"),
        ("a > b", ">"),
        ('echo "$FOO"', "$"),
        ("ls *.py", "*"),
        ("python3 -c 'print(1); x = $2'", ""),
        ("echo \\$FOO", ""),
        ('echo "a; b"', ""),
        ("python3 train.py --lr 1e-3", ""),
    ],
)
def test_note_if_a_command_needs_a_shell(line: str, note: str, capsys: pytest.CaptureFixture[str]) -> None:
    request = asked(line=line)
    told = capsys.readouterr().err
    assert request.command[0] != "sh", "the words are still run as they are"
    assert (f"`{note}` has no special meaning; add `--shell`" in told) if note else not told


def test_user_data_must_be_a_script(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("#cloud-config\npackages: [git]\n")
    with pytest.raises(BadInput, match="must start with `#!`") as refused:
        read_user_data(str(data))
    assert "cloud-config" in refused.value.hint


def test_large_user_data_is_refused_before_sending(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"x" * 10_000_000)
    with pytest.raises(BadInput, match="more than 64 KB"):
        read_user_data(str(data))
    data.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="not UTF-8 text"):
        read_user_data(str(data))


def plan(*choices: tuple[str, str, int]) -> bytes:
    """The part of a plan that is read: provider, GPU model, count."""
    offer = {
        "region": "", "zone": "", "gpu_share": 1.0, "gpu_memory_bytes": None, "gpu_memory_total_bytes": None,
        "gpu_fp32_tflops": None, "vcpus": None, "cpu": "", "ram_bytes": None, "disk_gb": None, "network_gbps": None,
        "mode": "owned", "term_months": None, "standing": "priced", "price_micros": 1, "price_per_gpu_micros": 1,
        "currency": "USD", "per": "hour", "price_usd_per_hour": 1.0, "quoted": None, "since": "", "as_of": "",
        "source": "", "cited": "", "flags": (), "note": "", "id": "",
    }  # fmt: skip
    made = [
        {
            "rank": rank,
            "offer": {
                **offer,
                "provider": provider, "instance_type": f"box{rank}", "gpu": gpu, "gpu_name": gpu, "gpu_count": n,
            },
            "instances": 1, "gpu_count": n, "mode": "owned", "hours": {"p10": 1.0, "p50": 1.0, "p90": 1.0},
            "cost": {"expected_micros": 1, "low_micros": 1, "high_micros": 1, "currency": "USD"},
            "parts": (), "interruptions": 0.0, "pareto": True,
        }
        for rank, (provider, gpu, n) in enumerate(choices, start=1)
    ]  # fmt: skip
    return msgspec.json.encode({"choices": made, "rejected": (), "warnings": ()})


@pytest.fixture
def plan_path(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_bytes(plan(("aws", "A100-SXM4-40", 8), ("own", "V100-SXM2", 4), ("own", "V100-SXM2", 2)))
    return path


def test_plan_launches_its_best_own_host(plan_path: Path) -> None:
    assert asked(plan=str(plan_path), vcpus=3).shape == ShapeRequest(gpu="V100-SXM2", gpus=4, vcpus=3)
    assert asked(plan=str(plan_path), choice=3).shape == ShapeRequest(gpu="V100-SXM2", gpus=2)


def test_a_provider_s_choice_is_rented_there_at_its_price(plan_path: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="mode `owned` cannot be launched"):
        asked(plan=str(plan_path), choice=1)
    with pytest.raises(BadInput, match="no choice 9"):
        asked(plan=str(plan_path), choice=9)
    other = tmp_path / "other.json"
    other.write_bytes(plan(("aws", "A100-SXM4-40", 8)).replace(b'"mode":"owned"', b'"mode":"spot"'))
    request = asked(plan=str(other))
    assert (request.provider, request.type, request.mode) == ("aws", "box1", "spot")
    assert request.max_price_micros_per_hour == 1_000_000
    assert asked(plan=str(other), max_price="2").max_price_micros_per_hour == 2_000_000
    with pytest.raises(BadInput, match="already names the machine"):
        asked(plan=str(other), provider="aws")


def test_the_next_offers_of_a_plan_are_the_alternatives(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    offers = (("aws", "A100-SXM4-40", 8), ("lambda", "V100-SXM2", 4), ("vast", "V100-SXM2", 4))
    path.write_bytes(plan(*offers).replace(b'"mode":"owned"', b'"mode":"spot"'))
    request = asked(plan=str(path), burst=True)
    assert (request.provider, request.burst) == ("aws", True)
    assert [(each.provider, each.type, each.mode) for each in request.alternatives] == [
        ("lambda", "box2", "spot"), ("vast", "", "spot"),
    ]  # fmt: skip
    assert {each.max_price_micros_per_hour for each in request.alternatives} == {1_000_000}
    dearer = asked(plan=str(path), max_price="3")
    assert {each.max_price_micros_per_hour for each in dearer.alternatives} == {3_000_000}
    assert asked(plan=str(path), choice=1).alternatives == ()


@given(st.binary(max_size=200))
def test_invalid_plan_file_is_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    path.write_bytes(content)
    with pytest.raises(BrokenSource, match="is not a plan"):
        plan_file.read_plan(str(path))


UNSAID: dict[str, Any] = {
    "instances": None, "vcpus": None, "ram": None, "disk": None, "images": None, "data": None, "ports": None,
    "networks": None, "addresses": None, "gpus": (),
    "gpus_default": None,
}  # fmt: skip


def test_quota_changes_only_the_given_limits() -> None:
    before = QuotaShape(instances=5, vcpus=8, gpus={"V100-SXM2": 2, "K80": 1}, gpus_default=0)
    words = {**UNSAID, "instances": "none", "ram": "16", "gpus": ("V100-SXM2=4", "K80=none")}
    after = limits_from(words, before)
    assert after == QuotaShape(vcpus=8, ram_bytes=16 << 30, gpus={"V100-SXM2": 4}, gpus_default=0)
    assert limits_from(UNSAID, before) == before


@pytest.mark.parametrize(
    "words", [{"instances": "-1"}, {"vcpus": "x"}, {"gpus": ("v100",)}, {"gpus": ("v100=x",)}]
)
def test_invalid_limits_are_refused(words: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        limits_from({**UNSAID, **words}, QuotaShape())


class Server:
    """A client of a server that has two named shapes."""

    @property
    def shapes(self) -> Self:
        return self

    def list(self) -> tuple[NamedShapeAnswer, ...]:
        named = {"cpu-2": CPUS, "V100-SXM2x2": CARDS}
        return tuple(NamedShapeAnswer(name=name, shape=each, free=1) for name, each in named.items())


@pytest.mark.parametrize(
    ("shape", "restarts"),
    [
        (ShapeRequest(vcpus=4), False),
        (ShapeRequest(gpus=2), False),
        (ShapeRequest(gpu="tesla v100 sxm2 16 gb"), False),
        (ShapeRequest(gpu="v100-sxm2", gpus=2), False),
        (ShapeRequest(gpu="A100"), True),
        (ShapeRequest(gpus=0), True),
        (ShapeRequest(gpus=4), True),
        (ShapeRequest(name="cpu-2"), True),
        (ShapeRequest(name="V100-SXM2x2"), False),
    ],
)
def test_only_a_change_of_gpus_restarts(shape: ShapeRequest, restarts: bool) -> None:
    assert changes_cards(Server(), instance(shape=CARDS), shape) is restarts  # type: ignore[arg-type]


def test_ambiguous_gpu_name_limits_each_model() -> None:
    limited = limits_from({**UNSAID, "gpus": ("V100=3", "A100:1g.10gb=7")}, QuotaShape()).gpus
    assert {"V100-SXM2", "V100-PCIe-32"} <= set(limited)
    assert {count for card, count in limited.items() if card.startswith("V100")} == {3}
    assert limited["A100:1g.10gb"] == 7
    with pytest.raises(UnknownName, match="V1000"):
        limits_from({**UNSAID, "gpus": ("V1000=3",)}, QuotaShape())
