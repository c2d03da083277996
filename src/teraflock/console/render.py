"""Templates: Jinja with automatic escaping, and the filters that turn values into text."""

from datetime import datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from teraflock.base.money import amount_text
from teraflock.base.quantities import bytes_text
from teraflock.console.assets import Assets
from teraflock.console.language import NAMES, TAGS, as_code
from teraflock.console.page import PREFIX
from teraflock.words.event import event_text
from teraflock.words.money import hourly_text
from teraflock.words.shape import cards_text
from teraflock.words.text import age_text, details_text, time_text


class Renderer:
    def __init__(self, assets: Assets) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(str(files("teraflock.console") / "templates")),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals.update(
            asset=assets.address,
            prefix=PREFIX,
            languages=NAMES,
            tags=TAGS,
            age_text=age_text,
            cards_text=cards_text,
            plain_text=str,
            size_text=bytes_text,
            event_text=event_text,
        )
        self._environment.filters.update(
            size=bytes_text,
            time=time_text,
            details=details_text,
            amount=_amount,
            hourly=_hourly,
            iso=_iso,
            code=as_code,
        )

    def rendered(self, template: str, values: dict[str, Any]) -> bytes:
        return self._environment.get_template(template).render(values).encode()


def _amount(micros: int, currency: str) -> str:
    return amount_text(micros, currency)


def _hourly(micros: int, currency: str) -> str:
    return hourly_text(micros, currency)


def _iso(at: datetime) -> str:
    return at.isoformat()
