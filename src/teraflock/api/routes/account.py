"""Accounts at public clouds: credentials, limits, and who may use them. For operators."""

from teraflock.api.call import Call
from teraflock.api.query import ForceQuery
from teraflock.api.route import ENGINE, Routes, RouteWork, Scope
from teraflock.base.filling import filled
from teraflock.instance.account.model import AccountCheck, AccountView, NewAccount, Orphans, UseView
from teraflock.tenant.rules import Permission
from teraflock.wire.account import (
    AccountAnswer,
    AccountCheckAnswer,
    AccountKeyRequest,
    AccountLimitRequest,
    AccountList,
    AccountProjectAnswer,
    AccountRequest,
    OrphanAnswer,
    OrphanList,
)

routes = Routes("accounts", scope=Scope.INSTALLATION, read=Permission.HOST_READ, write=Permission.HOST_WRITE)
CLOUD = (*ENGINE, "bad_credentials", "over_quota", "no_money", "does_not_boot", "bad_input", "unknown_name")
"""Error codes of a call to a provider."""


@routes.get("/v1/accounts")
def list_accounts(call: Call) -> AccountList:
    """List all accounts, with what their machines cost this month."""
    return AccountList(items=tuple(map(account_answer, call.nouns.accounts.accounts())))


@routes.post("/v1/accounts", status=201, creates=True, errors=("conflict", "bad_input", "unknown_name"))
def add_account(call: Call, body: AccountRequest) -> AccountAnswer:
    """Add an account and its site. The server opens the site within seconds.

    Nobody may use it until you share it with a project.
    """
    return account_answer(call.nouns.accounts.add(call.actor, new_account(body)))


@routes.get("/v1/accounts/{account}")
def show_account(call: Call, account: str) -> AccountAnswer:
    """Show one account."""
    return account_answer(call.nouns.accounts.account(account))


@routes.delete("/v1/accounts/{account}", work=RouteWork.LONG)
def remove_account(call: Call, account: str, query: ForceQuery) -> None:
    """Remove an account that has no machines. `force` does not ask the provider."""
    call.nouns.accounts.remove(call.actor, account, force=query.force)


@routes.post("/v1/accounts/{account}/check", may=Permission.HOST_READ, work=RouteWork.LONG)
def check_account(call: Call, account: str) -> AccountCheckAnswer:
    """Make one read-only call with the credentials, and explain what is wrong. Changes nothing."""
    return account_check_answer(call.nouns.accounts.check(account))


@routes.put("/v1/accounts/{account}/key", errors=("refused",))
def set_account_key(call: Call, account: str, body: AccountKeyRequest) -> AccountAnswer:
    """Replace the stored credentials of an account."""
    return account_answer(call.nouns.accounts.set_secret(call.actor, account, body.secret))


@routes.put("/v1/accounts/{account}/limit")
def set_account_limit(call: Call, account: str, body: AccountLimitRequest) -> AccountAnswer:
    """Set the most that the account's machines may cost in a month."""
    return account_answer(call.nouns.accounts.set_limit(call.actor, account, body.limit_micros))


@routes.put("/v1/accounts/{account}/projects/{shared}", errors=("ambiguous_name",))
def share_account(call: Call, account: str, shared: str, body: AccountLimitRequest) -> AccountAnswer:
    """Let a project rent machines with an account, up to a limit per month."""
    project = call.nouns.tenants.projects.show(call.actor, shared)
    return account_answer(
        call.nouns.accounts.share(call.actor, account, project, limit_micros=body.limit_micros)
    )


@routes.delete("/v1/accounts/{account}/projects/{shared}", errors=("ambiguous_name",))
def unshare_account(call: Call, account: str, shared: str) -> AccountAnswer:
    """Stop letting a project rent machines with an account. Its machines keep running."""
    project = call.nouns.tenants.projects.show(call.actor, shared)
    return account_answer(call.nouns.accounts.share(call.actor, account, project, may=False))


@routes.get("/v1/accounts/{account}/orphans", work=RouteWork.LONG, errors=CLOUD)
def list_orphans(call: Call, account: str) -> OrphanList:
    """List what the provider has with our mark that belongs to no instance."""
    return orphan_list(call.nouns.accounts.orphans(account))


@routes.post("/v1/accounts/{account}/sweep", work=RouteWork.LONG, errors=CLOUD)
def sweep_account(call: Call, account: str) -> OrphanList:
    """Delete orphans that two listings in a row show. Returns what was deleted."""
    return orphan_list(call.nouns.accounts.sweep(call.actor, account))


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
