"""Accounts on the wire."""

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
    return NewAccount(
        name=request.name,
        provider=request.provider,
        secret=request.secret or "",
        secret_from=request.secret_from,
        options=request.options,
        currency=request.currency,
        limit_micros=request.limit_micros,
    )


def account_answer(view: AccountView) -> AccountAnswer:
    account = view.account
    return AccountAnswer(
        name=account.name,
        provider=account.provider,
        state="broken" if view.problem else "ready" if view.since else "unknown",
        problem=view.problem,
        since=view.since,
        secret_from=view.secret_from,
        options=view.options,
        currency=account.currency,
        limit_micros=account.limit_micros,
        today_micros=view.spending.today_micros,
        month_micros=view.spending.month_micros,
        per_hour_micros=view.spending.per_hour_micros,
        instances=view.instances,
        projects=tuple(map(_project_answer, view.uses)),
        created_at=account.created_at,
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
    return AccountCheckAnswer(
        name=check.name,
        ok=not check.problem,
        found=check.found,
        problem=check.problem,
        hint=check.hint,
        code=check.code,
    )


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
        OrphanAnswer(
            kind=each.kind,
            remote_id=each.remote_id,
            name=each.name,
            micros_per_hour=each.price_micros_per_hour,
            currency=each.currency,
        )
        for each in orphans.leftovers
    ]
    return OrphanList(items=(*machines, *others))
