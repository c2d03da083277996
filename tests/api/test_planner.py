"""The planner over the API: the same JSON and messages as the CLI, and no access to files of the server."""

import gc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.api.asking import Answer, ApiServer

from teraflock.app.owned_servers import write_servers
from teraflock.cli import main
from teraflock.plan.owned import Server

RunTera = Callable[..., tuple[int, bytes, str]]
CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    server = ApiServer(tmp_path_factory.mktemp("planner") / "home")
    yield server
    server.close()


@pytest.fixture(scope="module")
def keys(planner: ApiServer) -> dict[str, str]:
    operator = planner.cloud.at.operator_key.read_text().strip()
    made = planner.ask("POST", "/v1/organisations", operator, body={"name": "acme", "owner": "me@acme"})
    return {"operator": operator, "tenant": made.json["key"]}


@pytest.fixture
def tera(
    planner: ApiServer, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Iterator[RunTera]:
    """Run `tera …` with the server's home in this process. Returns exit code, stdout and stderr."""
    monkeypatch.setenv("TERA_HOME", str(planner.cloud.at.home))
    monkeypatch.setenv("COLUMNS", "100")

    often = gc.get_threshold()

    def run(*words: str) -> tuple[int, bytes, str]:
        monkeypatch.setattr("sys.argv", ["tera", *words])
        with pytest.raises(SystemExit) as ending:
            main.run()
        out, err = capfdbinary.readouterr()
        assert isinstance(ending.value.code, int)
        return ending.value.code, out, err.decode()

    yield run
    gc.set_threshold(*often)


def same(answer: Answer, expected: tuple[int, bytes, str]) -> None:
    """Check that API and CLI give the same JSON, or the same message and hint."""
    code, out, err = expected
    if code in (0, 3):
        assert answer.status == 200, answer
        assert msgspec.json.format(answer.body, indent=2) + b"\n" == out
    else:
        assert code == 2
        assert (answer.status, answer.json["code"] in ("bad_input", "unknown_name")) == (422, True)
        sentence, _, hint = err.removeprefix("error: ").partition("\n\nhint: ")
        assert (answer.json["detail"], answer.json["hint"]) == (sentence.strip(), hint.strip())


def options(words: Mapping[str, Any]) -> list[str]:
    """Convert the fields of a request to options of a command."""
    found: list[str] = []
    for name, value in words.items():
        option = f"--{name.replace('_', '-')}"
        for each in value if isinstance(value, list | tuple) else [value]:
            found += [option] if each is True else [] if each is False else [f"{option}={each}"]
    return found


# --- lists -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("/v1/gpus", ["gpus"]),
        ("/v1/gpus?name=A100", ["gpus", "A100"]),
        ("/v1/gpus?name=TPU-v4", ["gpus", "TPU-v4"]),
        ("/v1/gpus?name=Z100", ["gpus", "Z100"]),
        ("/v1/providers", ["providers"]),
        ("/v1/providers?name=oracle", ["providers", "oracle"]),
        ("/v1/providers?name=nobody", ["providers", "nobody"]),
        ("/v1/rates", ["rates"]),
    ],
)
def test_lists_equal_the_cli(
    planner: ApiServer, keys: dict[str, str], tera: RunTera, target: str, words: list[str]
) -> None:
    same(planner.ask("GET", target, keys["tenant"]), tera(*words, "--json"))


def test_new_rates_and_gpu_models_take_effect_at_once(
    planner: ApiServer, keys: dict[str, str], tera: RunTera, tmp_path: Path
) -> None:
    from teraflock.catalog.own import EXAMPLE

    before = planner.ask("GET", "/v1/offers?gpu=V100&currency=CNY&limit=1", keys["tenant"]).json[0]
    (tmp_path / "rates.csv").write_text("date,currency,per_usd,source\n2020-01-01,CNY,100,test\n")
    (tmp_path / "card.yaml").write_text(EXAMPLE)
    assert tera("rates", "import", str(tmp_path / "rates.csv"))[0] == 0
    assert tera("gpus", "add", str(tmp_path / "card.yaml"))[0] == 0
    try:
        for target, words in (
            ("/v1/rates", ["rates"]),
            ("/v1/gpus", ["gpus"]),
            (
                "/v1/offers?gpu=V100&currency=CNY&limit=1",
                ["offers", "--gpu=V100", "--currency=CNY", "--limit=1"],
            ),
        ):
            same(planner.ask("GET", target, keys["tenant"]), tera(*words, "--json"))
        after = planner.ask("GET", "/v1/offers?gpu=V100&currency=CNY&limit=1", keys["tenant"]).json[0]
        assert after["price_micros"] > 10 * before["price_micros"]
    finally:
        assert tera("rates", "reset")[0] == 0


@pytest.mark.parametrize("filters", ["gpu=V100", "gpu=V100&mode=spot&currency=CNY", "gpu=nonsense"])
def test_the_price_history_equals_the_cli(
    planner: ApiServer, keys: dict[str, str], tera: RunTera, filters: str
) -> None:
    words = [f"--{each}" for each in filters.split("&")]
    same(
        planner.ask("GET", f"/v1/offers/history?{filters}", keys["tenant"]),
        tera("offers", "history", *words, "--json"),
    )


# --- offers ----------------------------------------------------------------------------------------------------------

FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "gpu": st.lists(st.sampled_from(("V100", "A100", "rtx 4090", "K80", "TPU-v4", "V10")), max_size=2),
        "count": st.sampled_from(("1", "2-8", "4+", "0", "8-2", "x", "")),
        "memory_min": st.sampled_from(("16", "40GB", "512MB", "lots", "")),
        "memory_total_min": st.sampled_from(("48", "1TB")),
        "vcpu_min": st.sampled_from(("8", "0.5", "-1", "nan")),
        "ram_min": st.sampled_from(("64", "1TB", "-1")),
        "provider": st.lists(st.sampled_from(("aws", "Google Cloud", "lambda", "nobody")), max_size=2),
        "region": st.lists(st.sampled_from(("us", "eu-", "北京", "%")), max_size=2),
        "mode": st.lists(st.sampled_from(("on-demand", "spot", "monthly", "sometimes")), max_size=2),
        "source": st.just(["survey"]),
        "price_max": st.sampled_from(("0.5", "10", "1e3", "cheap", "-1")),
        "sort": st.sampled_from(
            (
                "price",
                "price-per-gpu",
                "price-per-tflops",
                "price-per-gb",
                "price-per-fp64",
                "price-per-int8",
                "luck",
            )
        ),
        "fp64_min": st.sampled_from(("4", "900", "x")),
        "int8_min": st.sampled_from(("1", "100")),
        "graphics": st.booleans(),
        "encodes": st.sampled_from(("hevc", "AV1", "vp9")),
        "per": st.sampled_from(("hour", "month", "year")),
        "currency": st.sampled_from(("USD", "CNY", "eur", "XXX")),
        "as_of": st.sampled_from(("2022-12-31", "2019", "2022-13")),
        "limit": st.integers(1, 60),
    },
)


@settings(max_examples=60, deadline=None, suppress_health_check=CHECKS)
@given(words=FILTERS)
def test_offers_equal_the_cli(
    planner: ApiServer, keys: dict[str, str], tera: RunTera, words: dict[str, Any]
) -> None:
    """From the store as well as from memory."""
    expected = tera("offers", *options(words), "--json")
    target = f"/v1/offers?{urlencode(words, doseq=True)}"
    same(planner.ask("GET", target, keys["tenant"]), expected)
    planner.cloud.services.planner.offers.settle()
    same(planner.ask("GET", target, keys["tenant"]), expected)


def test_refused_prices_are_listed_on_request(
    planner: ApiServer, keys: dict[str, str], tera: RunTera
) -> None:
    words = ["--provider=aws", "--gpu=V100"]
    same(
        planner.ask("GET", "/v1/offers?provider=aws&gpu=V100&refused=true&limit=1000", keys["tenant"]),
        tera("offers", *words, "--all", "--json"),
    )


CATALOG = """provider,instance_type,gpu,gpu_count,price,per,currency,mode,as_of
our-cloud,tiny,V100,1,0.02,hour,USD,on-demand,2026-08-01
"""


def test_an_import_by_another_process_takes_effect_at_once(
    planner: ApiServer, keys: dict[str, str], tera: RunTera, tmp_path: Path
) -> None:
    def cheapest() -> Any:
        return planner.ask("GET", "/v1/offers?gpu=V100&mode=on-demand&limit=1", keys["tenant"]).json[0]

    cheapest()
    planner.cloud.services.planner.offers.settle()
    assert cheapest()["provider"] != "our-cloud"
    (tmp_path / "ours.csv").write_text(CATALOG)
    assert tera("offers", "import", "ours", str(tmp_path / "ours.csv"))[0] == 0
    assert cheapest()["provider"] == "our-cloud", "from the store"
    planner.cloud.services.planner.offers.settle()
    assert cheapest()["provider"] == "our-cloud", "from memory"
    same(
        planner.ask("GET", "/v1/offers?provider=our-cloud", keys["tenant"]),
        tera("offers", "--provider=our-cloud", "--json"),
    )


# --- estimates and plans ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        {"batch": 64, "gpu": ["V100", "A100"]},
        {"batch": 8, "memory_limit": ["11GB", "11GiB"], "steps": 100},
        {"global_batch": 64, "gpus": 4, "epochs": 2, "samples": 1000, "precision": "tf32", "gpu": ["A100"]},
        {"gpu": ["V100"]},
        {"batch": 0},
        {"batch": 64, "gpus": 9},
        {"batch": 64, "gpu": ["Z100"]},
        {"batch": 64, "precision": "fp7"},
        {"batch": 64, "cpu": "mine"},
        {"batch": 64, "epochs": 3},
        {"batch": 64, "gpu": ["TPU-v4"]},
        {"batch": 64, "seq": 128},
        {"batch": 8, "compile": True, "precision": "bf16", "gpu": ["A100"]},
        {"batch": 8, "precision": "fp8", "gpu": ["V100"]},
        {"batch": 8, "load_in": "8bit", "lora_rank": 8, "lora_dtype": "fp32"},
    ],
    ids=str,
)
def test_estimates_equal_the_cli(
    planner: ApiServer, keys: dict[str, str], tera: RunTera, words: dict[str, Any]
) -> None:
    expected = tera("estimate", "resnet18", *options(words), "--json")
    same(planner.ask("POST", "/v1/estimates", keys["tenant"], body={"model": "resnet18", **words}), expected)


PLANS = st.fixed_dictionaries(
    {"top": st.integers(0, 3)},
    optional={
        "gpus": st.sampled_from(("1", "2-8", "4+", "0", "x")),
        "gpu": st.lists(st.sampled_from(("V100", "a100", "Z100")), max_size=2),
        "source": st.lists(st.sampled_from(("shipped", "nobody")), max_size=1),
        "instances": st.sampled_from(("1-4", "0")),
        "memory_min": st.sampled_from(("16", "80GB")),
        "deadline": st.sampled_from(("36h", "2 weeks", "2190-01-01", "soon")),
        "budget": st.sampled_from(("5", "200CNY", "$20", "¥5", "0.001", "much")),
        "provider": st.lists(st.sampled_from(("aws", "gcp", "nobody")), max_size=2),
        "region": st.lists(st.sampled_from(("us", "eu")), max_size=1),
        "mode": st.lists(st.sampled_from(("on-demand", "spot", "sometimes")), max_size=2),
        "disk": st.sampled_from((50.0, -1.0)),
        "currency": st.sampled_from(("CNY", "XXX")),
        "sort": st.sampled_from(("time", "risk", "luck")),
        "zero": st.sampled_from((2, 4)),
    },
)
WORK = st.sampled_from(
    (
        {"hours": 10.0},
        {"hours_per_month": 200.0},
        {},
        {"model": "resnet18", "batch": 64, "steps": 1000.0},
        {"model": "resnet18", "global_batch": 64, "epochs": 1.0, "samples": 1e5, "shard": True},
        {"model": "gpt2", "batch": 1, "steps": 10.0, "tensor_parallel": 2, "offload": True},
        {"model": "resnet81", "batch": 64, "steps": 1.0},
    )
)


@settings(max_examples=25, deadline=None, suppress_health_check=CHECKS)
@given(work=WORK, wish=PLANS)
def test_plans_equal_the_cli(
    planner: ApiServer, keys: dict[str, str], tera: RunTera, work: dict[str, Any], wish: dict[str, Any]
) -> None:
    model = [work["model"]] if "model" in work else []
    expected = tera("plan", *model, *options({**work, **wish, "model": []}), "--json")
    same(planner.ask("POST", "/v1/plans", keys["tenant"], body={**work, **wish}), expected)


@pytest.mark.parametrize(
    "words",
    [
        {"purpose": "training", "limit": 3},
        {"purpose": "hpc", "fp64_min": "5", "currency": "EUR"},
        {"purpose": "inference", "mode": ["on-demand"], "provider": ["aws"]},
        {"purpose": "learning"},
        {"purpose": "mining"},
        {"purpose": "video", "limit": 0},
        {"purpose": "video", "sort": "price-per-gb"},
        {"purpose": "rendering", "gpu": ["A100"], "graphics": True},
    ],
    ids=str,
)
def test_recommendations_equal_the_cli(
    planner: ApiServer, keys: dict[str, str], tera: RunTera, words: dict[str, Any]
) -> None:
    purpose = words["purpose"]
    expected = tera("recommend", purpose, *options({**words, "purpose": []}), "--json")
    same(planner.ask("POST", "/v1/recommendations", keys["tenant"], body=words), expected)


def test_a_plan_without_choices_says_why(planner: ApiServer, keys: dict[str, str], tera: RunTera) -> None:
    answer = planner.ask("POST", "/v1/plans", keys["tenant"], body={"hours": 10, "budget": "0.0001"})
    code, out, err = tera("plan", "--hours=10", "--budget=0.0001", "--json")
    assert (code, answer.json["choices"]) == (3, [])
    assert answer.json["rejected"]
    assert f"error: {answer.json['no_plan']['detail']}" in err
    assert answer.json["no_plan"]["hint"] in err
    same(answer, (code, out, err))


SERVER = Server(name="ours", gpu="V100", gpu_count=1, purchase_micros=1_000_000, years=3.0)


def test_only_operators_see_the_cost_of_own_hosts(
    planner: ApiServer, keys: dict[str, str], tera: RunTera
) -> None:
    write_servers(str(planner.cloud.at.home), [SERVER])
    body = {"hours": 10, "gpus": "1", "top": 3}
    expected = tera("plan", "--hours=10", "--gpus=1", "--top=3", "--json")
    try:
        same(planner.ask("POST", "/v1/plans", keys["operator"], body=body), expected)
        assert b"own-servers" in expected[1]
        tenant = planner.ask("POST", "/v1/plans", keys["tenant"], body=body)
        assert tenant.status == 200
        assert b"own-servers" not in tenant.body
    finally:
        write_servers(str(planner.cloud.at.home), [])


# --- hostile tenants -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/estimates", "/v1/plans"])
def test_model_names_never_open_files_of_the_server(
    planner: ApiServer, keys: dict[str, str], tmp_path: Path, path: str
) -> None:
    config = (tmp_path / "config.json", tmp_path / "missing.json")
    plain = (tmp_path / "secret", tmp_path / "missing")
    trace = (tmp_path / "job.trace", tmp_path / "missing.trace")
    for there, missing in (config, plain, trace):
        there.write_text('{"model_type": "secret"}')
        answers = [
            planner.ask("POST", path, keys["tenant"], body={"model": str(each), "batch": 1, "steps": 1})
            for each in (there, missing)
        ]
        assert {answer.status for answer in answers} == {422}
        assert b"model_type" not in answers[0].body
        expected = [
            answer.json["detail"].replace(str(each), "")
            for answer, each in zip(answers, (there, missing), strict=True)
        ]
        assert expected[0] == expected[1], "the answer must not reveal whether a file exists"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/estimates", {"model": "resnet18", "batch": 10**400}),
        ("/v1/estimates", {"model": "resnet18", "batch": 1 << 60}),
        ("/v1/estimates", {"model": "resnet18", "batch": 1, "gpu": ["V100"] * 21}),
        ("/v1/estimates", {"model": "r" * 201, "batch": 1}),
        ("/v1/estimates", {"model": "resnet18", "batch": 1, "source": "/etc/passwd"}),
        ("/v1/plans", {"hours": 1, "why": True}),
        ("/v1/plans", {"hours": 1, "region": ["x" * 201]}),
    ],
)
def test_values_that_are_too_large_or_unknown_are_refused(
    planner: ApiServer, keys: dict[str, str], path: str, body: dict[str, Any]
) -> None:
    answer = planner.ask("POST", path, keys["tenant"], body=body)
    assert (answer.status, answer.code) == (400, "malformed_request")


def test_errors_in_files_of_the_operator_show_no_path(planner: ApiServer, keys: dict[str, str]) -> None:
    rates = planner.cloud.at.home / "rates.csv"
    before = planner.ask("GET", "/v1/rates", keys["tenant"])
    rates.write_text("no rates")
    try:
        answer = planner.ask("GET", "/v1/rates", keys["tenant"])
        assert (answer.status, answer.body) == (200, before.body), "the last good rates stay in use"
        plan = planner.ask("POST", "/v1/plans", keys["tenant"], body={"hours": 1, "top": 1})
        assert str(rates.parent).encode() not in plan.body
    finally:
        rates.unlink()
