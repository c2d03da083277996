"""Accounts at public clouds, for operators."""

from teraflock.client.noun import Noun
from teraflock.client.transport import Method
from teraflock.wire.account import (
    AccountAnswer,
    AccountCheckAnswer,
    AccountKeyRequest,
    AccountLimitRequest,
    AccountList,
    AccountRequest,
    OrphanAnswer,
    OrphanList,
)


class Accounts(Noun):
    in_project = False

    def list(self) -> tuple[AccountAnswer, ...]:
        return self._get(AccountList, "accounts").items

    def get(self, name: str) -> AccountAnswer:
        return self._get(AccountAnswer, "accounts", name)

    def add(self, request: AccountRequest) -> AccountAnswer:
        return self._create(AccountAnswer, "accounts", body=request)

    def remove(self, name: str, *, force: bool = False) -> None:
        self._send("DELETE", "accounts", name, force=force)

    def check(self, name: str) -> AccountCheckAnswer:
        return self._act("POST", AccountCheckAnswer, "accounts", name, "check")

    def set_key(self, name: str, secret: str) -> AccountAnswer:
        body = AccountKeyRequest(secret=secret)
        return self._act("PUT", AccountAnswer, "accounts", name, "key", body=body)

    def set_limit(self, name: str, limit_micros: int | None) -> AccountAnswer:
        body = AccountLimitRequest(limit_micros=limit_micros)
        return self._act("PUT", AccountAnswer, "accounts", name, "limit", body=body)

    def share(
        self, name: str, project: str, *, limit_micros: int | None = None, may: bool = True
    ) -> AccountAnswer:
        method: Method = "PUT" if may else "DELETE"
        body = AccountLimitRequest(limit_micros=limit_micros) if may else None
        return self._act(method, AccountAnswer, "accounts", name, "projects", project, body=body)

    def orphans(self, name: str) -> tuple[OrphanAnswer, ...]:
        return self._get(OrphanList, "accounts", name, "orphans").items

    def sweep(self, name: str) -> tuple[OrphanAnswer, ...]:
        return self._act("POST", OrphanList, "accounts", name, "sweep").items
