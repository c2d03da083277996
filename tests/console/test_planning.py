"""Offers, Plan, Costs and Learn in a real browser, and their answers without one."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.asking import Tenants
from tests.console.browser import AXE, NEEDS_CHROMIUM, browsing, furnished_server, sign_in, wait_until
from tests.console.visiting import ConsoleServer
from tests.story.api_server import Server

from teraflock.console.pages.learn import LESSONS, RIGHT
from teraflock.tenant.lesson.service import LessonService
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.shape import ShapeRequest

COSTS = "/console/projects/default/costs"
HOSTILE = "<script>alert(1)</script>"
CONFIG = (
    '{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,'
    ' "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 2048,'
    ' "tie_word_embeddings": false, "hidden_act": "silu"}'
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with furnished_server(tmp_path_factory.mktemp("planning")) as server:
        yield server


@pytest.fixture(scope="module")
def owner(unchanged: ConsoleServer, tenants: Tenants) -> str:
    return unchanged.session(tenants.keys["owner"])


# --- offers --------------------------------------------------------------------------------------------------------


@NEEDS_CHROMIUM
def test_offers_are_filtered_compared_and_added_up(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server)
        page.goto(f"{server.url}/console/offers")
        with page.expect_response(re.compile("/offers/rows.*V100")):
            page.fill("#filters [name=gpu]", "V100")
        page.wait_for_url("**/console/offers?*gpu=V100*")
        wait_until(
            page,
            "[...document.querySelectorAll('#offers tbody th')].every(each => each.innerText.includes('V100'))",
        )
        page.locator("#history canvas").wait_for()
        boxes = page.locator("#offers input.compare")
        for index in range(4):
            boxes.nth(index).check()
        assert boxes.nth(4).is_disabled(), "at most four are compared"
        assert page.locator("#compare-body tr").first.locator("td").count() == 4
        with page.expect_response(re.compile("/offers/rows")):
            page.fill("#filters [name=gpu]", "A100")
        assert page.locator("#compare-body tr").first.locator("td").count() == 4, "it stays while you filter"
        page.wait_for_url("**/console/offers?*gpu=A100*")
        page.reload()
        assert page.input_value("#filters [name=gpu]") == "A100"
        page.fill("#calculator [name=gpu]", "V100")
        page.locator("#totals", has_text="on-demand").wait_for()
        with page.expect_response(re.compile("/offers/rows")):
            page.fill("#filters [name=gpu]", "no such card")
        page.locator("#offers .notice.error").wait_for()


def test_filters_of_offers_answer_with_a_sentence(unchanged: ConsoleServer, owner: str) -> None:
    found = unchanged.get("/console/offers/rows?gpu=V100&count=1&mode=on-demand", owner, hx_request="true")
    assert "V100" in found.words
    assert found.header("hx-replace-url") == "/console/offers?gpu=V100&count=1&mode=on-demand"
    for query, words in (
        ("gpu=nonsense", "nonsense"), ("count=x", "not a number of GPUs"), ("price_max=-1", "negative"),
        ("sort=up", "up"), ("currency=XXX", "XXX"), ("limit=abc", "not a whole number"),
        (f"gpu={HOSTILE}", "alert"), (f"region={HOSTILE}", "No offer matches"),
    ):  # fmt: skip
        part = unchanged.get(f"/console/offers/rows?{query}", owner, hx_request="true")
        assert (part.status, words in part.words, "<script>alert" in part.text) == (200, True, False), query
        whole = unchanged.get(f"/console/offers?{query}", owner)
        assert "<script>alert" not in whole.text
        assert whole.status in (200, 422)


def test_the_price_history_needs_a_gpu_model(unchanged: ConsoleServer, tenants: Tenants) -> None:
    key = tenants.keys["viewer"]
    found = unchanged.ask("GET", "/v1/offers/history?gpu=V100&mode=on-demand", key).json
    days = [each["day"] for each in found]
    assert days == sorted(days)
    assert days
    assert all(p["lowest_micros"] <= p["median_micros"] <= p["highest_micros"] for p in found)
    assert unchanged.ask("GET", "/v1/offers/history", key).code == "bad_input"
    assert unchanged.ask("GET", "/v1/offers/history?gpu=nonsense", key).code == "unknown_name"


# --- plan ----------------------------------------------------------------------------------------------------------


@NEEDS_CHROMIUM
def test_a_plan_is_made_shared_and_launched(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server)
        page.goto(f"{server.url}/console/plan")
        page.get_by_role("link", name="Try an example").click()
        page.locator("#plan-chart canvas").wait_for()
        page.locator("#memory-chart canvas").wait_for()
        assert "The most in use is" in page.inner_text("#memory-text")
        page.locator("#buy-chart canvas").wait_for()
        link = page.inner_text("#plan-link")
        best = page.locator("#plan .tile .value").first.inner_text()
        page.goto(link)
        page.locator("#plan-chart canvas").wait_for()
        assert page.locator("#plan .tile .value").first.inner_text() == best
        page.evaluate(AXE.read_text("utf-8"))
        found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
        page.get_by_text("Why not the others?").click()
        page.locator("#plan details .tag").first.wait_for()
        page.locator("#plan").get_by_role("link", name="Launch").first.click()
        page.wait_for_url("**/launch?shape=V100*")


@NEEDS_CHROMIUM
def test_a_dropped_config_is_planned_in_place_of_a_model(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(CONFIG, "utf-8")
    with browsing() as page:
        sign_in(page, server)
        page.goto(f"{server.url}/console/plan")
        page.set_input_files("#model-file", file)
        page.get_by_text("In place of the model: config.json").wait_for()
        page.fill("[name=batch]", "1")
        page.get_by_text("More options").click()
        page.fill("[name=steps]", "1000")
        page.get_by_role("button", name="Make the plan").click()
        page.locator("#plan-chart canvas").wait_for()
        page.goto(page.inner_text("#plan-link"))
        page.locator("#plan-chart canvas").wait_for()


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"model": "resnet50", "batch": "64"}, "amount of work"),
        ({"model": "resnet50", "batch": "64", "epochs": "3"}, "Samples per epoch"),
        ({"model": "nonsense", "batch": "64", "steps": "10"}, "nonsense"),
        ({"model": "/etc/passwd", "batch": "1", "steps": "10"}, "passwd"),
        ({"model": "resnet50", "batch": "x"}, "not a whole number"),
        ({"hours": "x"}, "not a number"),
        ({"config": "[]", "batch": "1", "steps": "10"}, "not a Hugging Face config"),
        ({"config": '{"model_type": "llama"}', "batch": "1", "steps": "10"}, "uploaded"),
        ({"config": '{"model_type": "llama", "hidden_size": -1}', "batch": "1", "steps": "10"}, "uploaded"),
        ({"trace": "bm9uc2Vuc2U=", "steps": "10"}, "is not a trace"),
        ({"trace": "!", "steps": "10"}, "trace"),
        ({"hours": "10", "gpus": "4-2"}, "reversed"),
        ({"hours": "10", "provider": HOSTILE}, "alert"),
    ],
)
def test_a_plan_that_cannot_be_made_says_why(
    unchanged: ConsoleServer, owner: str, form: dict[str, str], words: str
) -> None:
    page = unchanged.post("/console/plan/answer", owner, form)
    assert (page.status, words in page.words, "<script>alert" in page.text) == (200, True, False), page.words
    assert "Traceback" not in page.text


def test_errors_of_plans_name_the_fields_of_the_form_in_its_language(
    unchanged: ConsoleServer, owner: str
) -> None:
    headers = {"cookie": "tera_language=ja"}
    answers = [
        unchanged.post("/console/plan/answer", owner, form, headers=headers).words
        for form in ({"model": "resnet50", "batch": "8"}, {"batch": "8"})
    ]
    assert "エポック数とエポックあたりのサンプル数、または" in "".join(answers[0].split())
    assert "プランにはモデルが必要です" in answers[1]
    assert not any("Give" in words or "--" in words for words in answers), answers


@pytest.mark.parametrize("language", ["zh", "ja"])
def test_what_a_plan_says_is_translated(unchanged: ConsoleServer, owner: str, language: str) -> None:
    """Its warnings, what its cost consists of, and why other offers were rejected."""
    headers = {"cookie": f"tera_language={language}"}
    for more in ({"deadline": "7d"}, {"budget": "100", "gpus": "2-4"}):
        form = {"model": "resnet50", "batch": "64", "epochs": "90", "samples": "1281167", **more}
        page = unchanged.post("/console/plan/answer", owner, form, headers=headers)
        assert "<tbody>" in page.text, page.words
        assert re.findall("<q lang=.en.>(.*?)</q>", page.text) == []


def test_a_plan_with_an_uploaded_model_has_choices(unchanged: ConsoleServer, owner: str) -> None:
    page = unchanged.post("/console/plan/answer", owner, {"config": CONFIG, "batch": "1", "steps": "1000"})
    assert "Expected cost" in page.words, page.words
    assert "/console/plan?config=" in page.header("hx-replace-url")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("gpu=V100&count=2&purchase=16000&years=3&watts=900&power=0.15", "Buy if"),
        ("gpu=V100&purchase=x", "not an amount"),
        ("gpu=V100&purchase=10&resale=20", "out of range"),
        ("gpu=V100&purchase=10&years=1000", "out of range"),
        ("gpu=V100&purchase=10&years=nan", "out of range"),
        ("gpu=V100&purchase=10&watts=inf", "out of range"),
        ("gpu=nonsense&purchase=10", "nonsense"),
        ("gpu=&purchase=", "Enter a GPU model"),
    ],
)
def test_buying_is_compared_with_renting(
    unchanged: ConsoleServer, owner: str, query: str, words: str
) -> None:
    page = unchanged.get(f"/console/plan/buy-or-rent?{query}", owner)
    assert (page.status, words in page.words) == (200, True), page.words


@pytest.mark.parametrize(
    ("language", "own", "rented"), [("en", "own V100", "on-demand, "), ("zh", "自有 V100", "按需, ")]
)
def test_the_curves_of_buying_have_names_in_the_language(
    unchanged: ConsoleServer, owner: str, language: str, own: str, rented: str
) -> None:
    query = "gpu=V100&count=2&purchase=16000&years=3&watts=900&power=0.15"
    page = unchanged.get(f"/console/plan/buy-or-rent?{query}", owner, cookie=f"tera_language={language}")
    drawn = re.search('data-curves="([^"]*)"', page.text)
    assert drawn
    labels = [each["label"] for each in json.loads(html.unescape(drawn[1]))["lines"]]
    assert labels[0].startswith(own)
    assert any(each.startswith(rented) for each in labels[1:]), labels


# --- costs ---------------------------------------------------------------------------------------------------------


@NEEDS_CHROMIUM
def test_costs_show_the_month_and_a_budget_can_be_set(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server)
        page.goto(server.url + COSTS)
        page.locator("section", has_text="Projects").get_by_role("link", name="default").wait_for()
        page.get_by_text("No instance has idle GPUs").wait_for()
        where = page.locator("section:has(#groups-title)").inner_text()
        assert ("not charged yet" in where, "0.0000 USD" in where) == (True, False), where
        for title in ("Member", "Label", "Instance"):
            page.get_by_role("link", name=title, exact=True).click()
        page.fill("[name=amount]", "500")
        page.get_by_role("button", name="Set the budget").click()
        page.get_by_text("The budget is set").wait_for()
        assert "of 500.00 USD per month" in page.inner_text("main")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download FOCUS CSV").click()
        assert "BilledCost" in Path(download.value.path()).read_text("utf-8").partition("\n")[0]
        page.get_by_role("link", name="Margin").click()
        page.locator("h1", has_text="Margin").wait_for()


def test_costs_refuse_bad_months_and_amounts(console: ConsoleServer, tenants: Tenants) -> None:
    session = console.session(tenants.keys["owner"])
    for query in ("month=2026-13", f"month={HOSTILE}", "month=2026-10%0A"):
        page = console.get(f"{COSTS}?{query}", session)
        assert ("<script>alert" in page.text, page.status in (200, 422)) == (False, True), query
    assert console.get(f"{COSTS}?month=2026-13", session).status == 422
    assert console.get(f"{COSTS}/focus?month=x%26project=other", session).status == 422
    for amount in ("", "x", "-1", "1e30", HOSTILE):
        page = console.post(f"{COSTS}/budget", session, {"amount": amount})
        assert (page.status, "<script>alert" in page.text) == (422, False), amount
    assert console.post(f"{COSTS}/budget", session, {"amount": "12.50"}).status == 303
    assert "12.50" in console.get(COSTS, session).words
    assert f'<th scope="row">{HOSTILE}' not in console.get(f"{COSTS}?by=label&label={HOSTILE}", session).text


def test_an_invoice_can_run_no_script(unchanged: ConsoleServer, tenants: Tenants, owner: str) -> None:
    page = unchanged.get(f"{COSTS}/invoices/2020-01", owner)
    assert page.status == 404
    assert unchanged.get(f"{COSTS}/invoices/x", owner).status == 422


# --- learn ---------------------------------------------------------------------------------------------------------


@NEEDS_CHROMIUM
def test_lessons_are_checked_and_lead_to_a_certificate(server: Server) -> None:
    with browsing() as page, server.client() as client:
        sign_in(page, server)
        page.goto(f"{server.url}/console/learn/cloud")
        page.get_by_label("For its GPUs, because they stay reserved for you").check()
        page.get_by_role("button", name="Check").click()
        page.get_by_text("This answer is not right").wait_for()
        for lesson in ("cloud", "card"):
            page.goto(f"{server.url}/console/learn/{lesson}")
            page.locator(f"[name=answer][value={RIGHT[lesson]}]").check()
            page.get_by_role("button", name="Check").click()
            page.get_by_text("Lesson passed").wait_for()
        page.locator(f"[name=answer][value={RIGHT['run']}]").check()
        page.get_by_role("button", name="Check").click()
        page.get_by_text("has finished its command yet").wait_for()
        page.get_by_role("link", name="Launch this run").click()
        page.get_by_role("button", name="Launch instance").click()
        page.locator("h1 .state.stopped").wait_for()
        for lesson in ("run", "money"):
            page.goto(f"{server.url}/console/learn/{lesson}")
            page.locator(f"[name=answer][value={RIGHT[lesson]}]").check()
            page.get_by_role("button", name="Check").click()
            page.get_by_text("Lesson passed").wait_for()
        page.wait_for_url("**/learn/certificate")
        assert "operator" in page.inner_text(".certificate .name")
        checked = page.inner_text("#certificate")
        page.get_by_role("button", name="Sign out").click()
        page.goto(checked)
        assert "This certificate is genuine" in page.inner_text("main")
        assert "operator" in page.inner_text(".certificate .name")
        page.evaluate(AXE.read_text("utf-8"))
        found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
        sign_in(page, server)
        page.goto(f"{server.url}/console/learn/certificate")
        assert page.inner_text("#certificate") == checked, "a new session has the same certificate"
        shape, labels = ShapeRequest(name="cpu-2"), {"lesson": "first-run"}
        client.instances.launch(LaunchRequest(name="forgotten", shape=shape, labels=labels))
        client.instances.wait_until("forgotten", "running")
        page.goto(f"{server.url}/console/learn/money")
        page.locator(f"[name=answer][value={RIGHT['money']}]").check()
        page.get_by_role("button", name="Check").click()
        page.get_by_text("is still running and costs money").wait_for()


def test_progress_belongs_to_the_member_and_stays(console: ConsoleServer, tenants: Tenants) -> None:
    owner = console.session(tenants.keys["owner"])
    console.post("/console/learn/cloud", owner, {"answer": RIGHT["cloud"]})
    again = console.session(tenants.keys["owner"])
    assert 'class="state good"' in console.get("/console/learn", again).text, "another session of the member"
    other = console.session(tenants.keys["member"])
    assert 'class="state good"' not in console.get("/console/learn", other).text
    assert console.get("/console/learn/certificate", owner).header("location") == "/console/learn"
    assert console.get("/console/learn/nothing", owner).status == 404
    assert console.post("/console/learn/nothing", owner, {"answer": "first"}).status == 404


def test_a_certificate_is_issued_once_and_checked_by_its_address(
    console: ConsoleServer, tenants: Tenants
) -> None:
    lessons = LessonService(console.cloud.database, console.cloud.clock)
    actor = console.cloud.services.nouns.tenants.authenticate(tenants.keys["member"])
    for lesson in (*LESSONS, LESSONS[0]):
        lessons.passes(actor, lesson, set(LESSONS))
    issued = lessons.certificate_of(actor)
    assert issued is not None
    page = console.get(f"/console/certificates/{issued.id}")
    assert page.status == 200
    assert {"member@acme", "acme", issued.id} <= set(page.words.split())
    made_up = f"crt_{'0' * 32}"
    for wrong in (made_up, "x", issued.id[:-1], issued.id.upper(), "%00"):
        assert console.get(f"/console/certificates/{wrong}").status in (404, 422), wrong
    console.ask("DELETE", "/v1/members/member@acme", tenants.keys["owner"])
    assert console.get(f"/console/certificates/{issued.id}").status == 200, "it outlives the membership"
