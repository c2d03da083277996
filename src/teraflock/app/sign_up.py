"""Sign-up as the settings allow it, and the credit that a new organisation gets."""

from os import urandom

from teraflock.app.settings import Settings
from teraflock.app.wiring import Cloud, defaults_of
from teraflock.base.errors import BadInput
from teraflock.base.money import amount_text, parse_micros
from teraflock.bill.credit.service import CreditService
from teraflock.bill.price.store import book
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Defaults, ProjectId
from teraflock.tenant.quota.parse import parse_organisation_quota
from teraflock.tenant.sign_up.model import SignUpTerms
from teraflock.tenant.sign_up.service import SignUpService


class CreditGift:
    """A credit in the currency of the price book, and payment in advance."""

    def __init__(self, credits: CreditService, micros: int) -> None:
        self._credits = credits
        self._micros = micros

    def text(self, tx: Transaction) -> str:
        prices = book(tx)
        return amount_text(self._micros, prices.currency) if self._micros and not prices.is_empty else ""

    def give(self, tx: Transaction, project: ProjectId) -> None:
        self._credits.open_prepaid(tx, project, self._micros, "sign-up")


def sign_up_of(cloud: Cloud) -> SignUpService | None:
    """None: sign-up is off. Raises `BadInput` if the settings cannot be used."""
    settings, nouns = cloud.settings, cloud.services.nouns
    micros, quotas = credit_of(settings), quotas_of(settings)
    if not settings.sign_up:
        return None
    return SignUpService(
        cloud.database,
        cloud.clock,
        urandom,
        nouns.sessions,
        nouns.tenants.organisations,
        CreditGift(CreditService(cloud.database, cloud.clock, urandom), micros),
        SignUpTerms(quotas=quotas, per_day_max=settings.sign_up_per_day),
    )


def credit_of(settings: Settings) -> int:
    try:
        micros = parse_micros(settings.sign_up_credit)
    except ValueError:
        micros = -1
    if micros < 0:
        raise BadInput(
            f"The setting `sign_up_credit` is not an amount: {settings.sign_up_credit[:40]}",
            hint="Write it as `10` or `2.50`. The currency is that of the price book",
        )
    return micros


def quotas_of(settings: Settings) -> Defaults:
    try:
        quota = parse_organisation_quota(settings.sign_up_quota)
    except BadInput as error:
        raise BadInput(f"Invalid setting `sign_up_quota`: {error.sentence}", hint=error.hint) from None
    if quota.projects != 1:
        raise BadInput(
            "The setting `sign_up_quota` needs `projects=1`",
            hint="A second project would not pay in advance. For customers whom you know, use `tera quota set --org`",
        )
    return Defaults(organisation=quota, project=defaults_of(settings).project)
