"""Plan: from a model to ranked offers with time and cost, and buying compared with renting."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import msgspec

from teraflock.base.errors import BadInput, TeraflockError
from teraflock.base.money import parse_micros
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.offers import CURRENCIES, gpus_text, link_of
from teraflock.console.pages.renting import launch_links, project_to_launch_in
from teraflock.console.request import Form
from teraflock.offer.model import MODES, Mode
from teraflock.offer.words import OfferWords
from teraflock.plan.buy_or_rent import CURVE_STEPS, MachineRent, Rent, break_even, cheapest_rent, curves
from teraflock.plan.model import SORTS, reason_text
from teraflock.plan.owned import Server
from teraflock.plan.rules import hours_text
from teraflock.tenant.admission import Scope
from teraflock.wire.plan import ChoiceShape, PlanRequest, PlanShape
from teraflock.wire.shape import NamedShapeAnswer
from teraflock.workload.model import OPTIMIZERS, PRECISIONS
from teraflock.workload.zoo import known_names

pages = Pages()
CHOICES: Final = 60
"""How many choices the chart shows. The table shows the first `ROWS`."""
ROWS: Final = 15
REJECTED: Final = 100
LINK_CHARACTERS_MAX: Final = 6_000
"""Longer links do not survive every mail program, so a plan with a large file is not shared by link."""
RENT_MODES: Final[tuple[Mode, ...]] = ("on-demand", "spot", "monthly", "reserved")
WATTS_MAX: Final = 10**6
WHOLE: Final = ("batch", "global_batch", "seq", "image_size", "lora_rank")
AMOUNTS: Final = ("steps", "epochs", "samples", "hours", "hours_per_month")
SUBJECTS: Final = ("model", "config", "trace", "hours", "hours_per_month")
"""What a plan is for. One of them is needed."""
TEXTS: Final = ("model", "optimizer", "memory_min", "memory_total_min", "deadline", "budget")
FIELDS: Final = {
    "model": "Model", "batch": "Batch per GPU", "precision": "Precision", "epochs": "Epochs",
    "samples": "Samples per epoch", "steps": "Steps, in place of epochs", "seq": "Tokens per sample",
    "image-size": "Image size, pixels", "optimizer": "Optimizer", "lora-rank": "LoRA rank", "gpus": "GPUs",
    "instances": "Machines", "deadline": "Deadline", "budget": "Budget", "provider": "Provider",
    "mode": "Purchase mode", "sort": "Order", "currency": "Currency",
}  # fmt: skip
"""What the form calls the options of `tera plan`, which the errors of the planner name."""
_OPTION: Final = re.compile("`--([a-z-]+)`")
DEFAULTS: Final = {"gpus": "1+", "instances": "1", "precision": "fp32", "currency": "USD", "sort": "cost"}
RENTS_COMPARED: Final = 200
"""Offers by price per GPU. The cheapest machines with few GPUs are among them."""


@pages.get("/plan", scope=Scope.KEY)
def show_plan(call: PageCall) -> Answer:
    """The form. With fields in the address, the plan is made at once."""
    query = call.request.query
    return call.page(
        "plan/show.html",
        section="plan",
        filled=query,
        is_asked=any(query.text(name) for name in ("model", "config", *AMOUNTS)),
        models=known_names(),
        precisions=PRECISIONS,
        optimizers=[each for each in OPTIMIZERS if each],
        modes=MODES,
        sorts=SORTS,
        currencies=CURRENCIES,
    )


@pages.post("/plan/answer", scope=Scope.KEY, long=True)
def make_plan(call: PageCall) -> Answer:
    """The plan for what is in the form."""
    plan, link = None, ""
    try:
        if not any(call.form.text(name) for name in SUBJECTS):
            raise BadInput("A plan needs a model", hint="Choose one, or drop the file of one")
        plan = call.client.plans.create(request_of(call.form))
        link = "" if call.form.text("trace") else link_of(call.at("plan"), call.form)
    except TeraflockError as error:
        call.error = _for_form(call, error)
    link = link if len(link) <= LINK_CHARACTERS_MAX else ""
    part = call.part(
        "plan/answer.html",
        plan=plan,
        rows=ROWS,
        rejected_max=REJECTED,
        points=_points(plan.choices) if plan else "",
        memory=_memory(plan) if plan else "",
        link=f"{call.origin}{link}" if link else "",
        launches=_launches(call, plan.choices[:ROWS]) if plan else {},
        gpus_text=gpus_text,
        hours_text=hours_text,
        reason_text=reason_text,
        in_words=cache(call.language.said),  # many choices are rejected for the same reason
    )
    return msgspec.structs.replace(part, headers={"HX-Replace-Url": link}) if link else part


@pages.get("/plan/buy-or-rent", scope=Scope.KEY)
def compare_buying(call: PageCall) -> Answer:
    """What an own server costs per month by utilisation, and what the cheapest offers cost."""
    query, found, drawn, server = call.request.query, [], "", None
    try:
        if query.text("gpu") and query.text("purchase"):
            server = server_of(query, call.now.date().isoformat())
            rents = [rent for mode in RENT_MODES if (rent := _cheapest(call, server, mode))]
            found = [break_even(server, rent) for rent in rents]
            names = [call.text("own {gpu}", gpu=server.name).unescape()]
            names += [f"{call.language.text(each.mode).unescape()}, {each.provider}" for each in rents]
            drawn = msgspec.json.encode(
                {
                    "currency": server.currency,
                    "steps": [100 * step / CURVE_STEPS for step in range(CURVE_STEPS + 1)],
                    "lines": [
                        {"label": name, "micros": each.micros}
                        for name, each in zip(names, curves(server, rents), strict=True)
                    ],
                }
            ).decode()
    except TeraflockError as error:
        call.error = error
    return call.part("plan/buy_or_rent.html", server=server, found=found, drawn=drawn)


def _for_form(call: PageCall, error: TeraflockError) -> TeraflockError:
    """The error of the planner in the language of the page, with the fields of the form in place of options."""
    say = call.language.say

    def field(found: re.Match[str]) -> str:
        label = FIELDS.get(found[1])
        return f"`{call.language.text(label)}`" if label else found[0]

    return TeraflockError(_OPTION.sub(field, say(error.sentence)), hint=_OPTION.sub(field, say(error.hint)))


def request_of(form: Form) -> PlanRequest:
    """The form as a request of the API. Empty fields are left out."""
    words: dict[str, Any] = {name: form.text(name) for name in TEXTS if form.text(name)}
    words |= {name: number for name in WHOLE if (number := form.number(name)) is not None}
    words |= {name: amount for name in AMOUNTS if (amount := _amount(form, name)) is not None}
    words |= {name: form.text(name) or default for name, default in DEFAULTS.items()}
    words |= {name: tuple(_split(form.text(name))) for name in ("provider", "region")}
    words |= {name: True for name in ("gradient_checkpointing", "shard") if form.text(name)}
    for name in ("config", "trace"):
        if form.text(name):
            words[name] = form.text(name)
            words.pop("model", None)
    return PlanRequest(**words, mode=form.many("mode"), top=CHOICES, timeline=True)


def server_of(form: Form, day: str) -> Server:
    def money(name: str) -> int:
        try:
            return parse_micros(form.text(name) or "0")
        except ValueError:
            raise BadInput(
                f"`{form.text(name)[:40]}` is not an amount of money", hint=f"Correct the field `{name}`"
            ) from None

    server = Server(
        name=form.text("gpu")[:40],
        gpu=form.text("gpu")[:40],
        gpu_count=form.number("count") or 1,
        currency="USD",
        purchase_micros=money("purchase"),
        years=_amount(form, "years") or 3,
        resale_micros=money("resale"),
        watts=_amount(form, "watts") or 0,
        power_micros_per_kwh=money("power"),
        hosting_micros_per_month=money("hosting"),
        staff_micros_per_month=money("staff"),
        as_of=day,
    )
    checked(server)
    return server


def checked(server: Server) -> None:
    if not 0 < server.years <= 100 or not 0 < server.gpu_count <= 1000:
        raise BadInput(
            "The years or the number of GPUs are out of range", hint="Give 1 to 100 years and 1 to 1000 GPUs"
        )
    amounts = (
        server.purchase_micros,
        server.resale_micros,
        server.hosting_micros_per_month,
        server.staff_micros_per_month,
    )
    if not 0 <= server.watts <= WATTS_MAX or not 0 <= server.power_micros_per_kwh <= 10**9:
        raise BadInput(
            "The power or its price is out of range", hint="Give watts of the whole server, and USD per kWh"
        )
    if min(amounts) < 0 or max(amounts) > 10**15 or server.resale_micros > server.purchase_micros:
        raise BadInput(
            "An amount is out of range",
            hint="Amounts are not negative, and the resale price is below the purchase price",
        )


def _cheapest(call: PageCall, server: Server, mode: Mode) -> Rent | None:
    words = OfferWords(gpu=(server.gpu,), mode=(mode,), sort="price-per-gpu", per="month")
    offers = call.client.offers.list(words, limit=RENTS_COMPARED)
    return cheapest_rent(
        server.gpu_count,
        mode,
        (
            MachineRent(
                provider=offer.provider,
                instance_type=offer.instance_type,
                gpu=offer.gpu or "",
                gpu_count=offer.gpu_count,
                micros_per_month=offer.price_micros,
                as_of=offer.as_of,
            )
            for offer in offers
            if offer.gpu_count
            and offer.price_micros is not None
            and offer.gpu_share == 1
            and not offer.retired
        ),
    )


def _amount(form: Form, name: str) -> float | None:
    text = form.text(name).replace(",", "")
    try:
        return float(text) if text else None
    except ValueError:
        raise BadInput(f"`{text[:40]}` is not a number", hint=f"Correct the field `{name}`") from None


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _points(choices: Sequence[ChoiceShape]) -> str:
    """Time and cost of each choice, for the chart."""
    points = [
        {
            "hours": each.hours.p50,
            "cost": each.cost.expected_micros,
            "front": each.pareto,
            "label": f"{gpus_text(each.offer) if each.offer else each.gpu_count}",
        }
        for each in choices
        if each.hours.p50 < float("inf")
    ]
    return msgspec.json.encode(
        {"currency": choices[0].cost.currency if choices else "", "points": points}
    ).decode()


def _memory(plan: PlanShape) -> str:
    """The memory over one step, and that of the GPU of the first choice, for the chart."""
    if not plan.memory_timeline_bytes:
        return ""
    offer = plan.choices[0].offer
    drawn = {"bytes": plan.memory_timeline_bytes, "card": (offer.gpu_memory_bytes or 0) if offer else 0}
    return msgspec.json.encode(drawn).decode()


def _launches(call: PageCall, choices: Sequence[ChoiceShape]) -> dict[int, str]:
    """By the rank of a choice: where to launch the same GPUs on own hosts if they are free, or to rent its machine."""
    project = project_to_launch_in(call)
    if not project:
        return {}
    shapes = call.client.shapes.list()
    address = call.at("projects", project, "launch")
    rented = launch_links(call, (each.offer for each in choices if each.offer and each.instances == 1))
    links = {each.rank: rented.get(each.offer.id, "") for each in choices if each.offer}
    links |= {each.rank: f"{address}?shape={name}" for each in choices if (name := _free_shape(each, shapes))}
    return {rank: link for rank, link in links.items() if link}


def _free_shape(choice: ChoiceShape, shapes: Sequence[NamedShapeAnswer]) -> str:
    if choice.offer is None or choice.instances != 1:
        return ""
    wanted = (choice.offer.gpu, choice.gpu_count)
    return next(
        (each.name for each in shapes if each.free and (each.shape.gpu, each.shape.gpus) == wanted), ""
    )
