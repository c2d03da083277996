"""Accounts on the wire."""

from teraflock.base.filling import filled
from teraflock.instance.account.model import AccountCheck, AccountView, NewAccount, Orphans, UseView
from teraflock.wire.account import (
    AccountAnswer,
    AccountCheckAnswer,
    AccountProjectAnswer,
    AccountRequest,
    OrphanAnswer,
    OrphanList,
)


def new_account(request: AccountRequest) -> NewAccount:
    return filled(NewAccount, request, secret=request.secret or "")


def account_answer(view: AccountView) -> AccountAnswer:
    account = view.account
    return filled(
        AccountAnswer,
        account,
        state="broken" if view.problem else "ready" if view.since else "unknown",
        problem=view.problem,
        since=view.since,
        secret_from=view.secret_from,
        options=view.options,
        today_micros=view.spending.today_micros,
        month_micros=view.spending.month_micros,
        per_hour_micros=view.spending.per_hour_micros,
        instances=view.instances,
        projects=tuple(map(_project_answer, view.uses)),
    )


def _project_answer(use: UseView) -> AccountProjectAnswer:
    return AccountProjectAnswer(
        project=use.project_name,
        project_id=use.project_id,
        limit_micros=use.limit_micros,
        month_micros=use.spending.month_micros,
        per_hour_micros=use.spending.per_hour_micros,
    )


def account_check_answer(check: AccountCheck) -> AccountCheckAnswer:
    return filled(AccountCheckAnswer, check, ok=not check.problem)


def orphan_list(orphans: Orphans) -> OrphanList:
    machines = [
        OrphanAnswer(
            kind="machine",
            remote_id=each.made.remote_id if each.made else "",
            name=each.instance_id,
            micros_per_hour=each.made.price_micros_per_hour if each.made else None,
            currency=each.made.currency if each.made else "",
        )
        for each in orphans.machines
    ]
    others = [
        filled(OrphanAnswer, each, micros_per_hour=each.price_micros_per_hour) for each in orphans.leftovers
    ]
    return OrphanList(items=(*machines, *others))
