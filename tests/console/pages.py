"""Who may open each page of the console, and what its address and its form need."""

from collections.abc import Mapping

import msgspec
from tests.api.asking import Tenants
from tests.api.test_permissions import COUNTS, EVERYONE, HOUSE, OWNER, PAYS, SEES, WORKS

from teraflock.console.page import PREFIX, ConsolePage

MANAGES = frozenset({"owner", "operator", "other"})
"""Those who manage some team: `other` manages another one, so ids of acme's are not found."""
KEYS = frozenset({"owner", "member", "elsewhere", "operator", "other"})


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    may: frozenset[str]
    form: Mapping[str, str] = {}
    query: str = ""
    states: frozenset[int] = frozenset()
    """Statuses besides 200 and 303 that only those who may act get: a conflict, or a name that is not theirs."""


CONFLICT = frozenset({409})
MISSING = frozenset({404, 409})

RULES: dict[str, Rule] = {
    "open_console": Rule(may=EVERYONE),
    "sign_out": Rule(may=EVERYONE),
    "list_instances": Rule(may=SEES),
    "list_rows": Rule(may=SEES),
    "follow_events": Rule(may=SEES),
    "show_instance": Rule(may=SEES),
    "show_facts": Rule(may=SEES),
    "show_log": Rule(may=WORKS),
    "start_instance": Rule(may=WORKS, states=CONFLICT),
    "stop_instance": Rule(may=WORKS),
    "restart_instance": Rule(may=WORKS),
    "acknowledge_notice": Rule(may=WORKS),
    "resize_instance": Rule(may=WORKS, form={"vcpus": "3"}),
    "make_snapshot": Rule(may=WORKS, form={"name": "now"}),
    "restore_snapshot": Rule(may=WORKS),
    "delete_snapshot": Rule(may=WORKS),
    "confirm_delete": Rule(may=WORKS),
    "delete_instance": Rule(may=WORKS),
    "show_daily_costs": Rule(may=SEES),
    "show_launch": Rule(may=WORKS),
    "show_quote": Rule(may=COUNTS, query="?shape=custom&vcpus=1"),
    "launch_instances": Rule(may=WORKS, form={"shape": "custom", "vcpus": "1"}),
    "show_terminal": Rule(may=WORKS),
    "open_terminal": Rule(may=WORKS),
    "read_terminal": Rule(may=WORKS, states=MISSING),
    "write_terminal": Rule(may=WORKS, form={"data": "bHM="}, states=MISSING),
    "resize_terminal": Rule(may=WORKS, form={"columns": "80"}, states=MISSING),
    "list_members": Rule(may=EVERYONE),
    "add_member": Rule(may=MANAGES, form={"name": "new@acme", "role": "viewer"}),
    "invite_member": Rule(may=MANAGES, states=MISSING),
    "set_role": Rule(may=MANAGES, form={"role": "member"}, states=MISSING),
    "remove_member": Rule(may=MANAGES, states=MISSING),
    "list_keys": Rule(may=EVERYONE),
    "make_key": Rule(may=KEYS, form={"name": "mine"}),
    "rotate_key": Rule(may=KEYS, states=frozenset({404, 422})),
    "revoke_key": Rule(may=KEYS, states=MISSING),
    "show_quotas": Rule(may=EVERYONE),
    "show_audit": Rule(may=EVERYONE - {"billing"}),
    "show_account": Rule(may=EVERYONE),
    "set_password": Rule(
        may=EVERYONE,
        form={"user_name": "somebody", "password": "four words are long", "again": "four words are long"},
        states=frozenset({403}),
    ),
    "set_totp": Rule(may=EVERYONE, states=frozenset({401})),
    "revoke_session": Rule(may=EVERYONE, states=frozenset({403, 404})),
    "list_hosts": Rule(may=HOUSE),
    "show_host": Rule(may=HOUSE),
    "change_host": Rule(may=HOUSE, form={"state": "draining"}),
    "list_clouds": Rule(may=HOUSE),
    "list_orphans": Rule(may=HOUSE, states=frozenset({404})),
    "list_offers": Rule(may=EVERYONE),
    "list_offer_rows": Rule(may=EVERYONE, query="?gpu=V100&count=1"),
    "calculate_offers": Rule(may=EVERYONE, query="?gpu=V100&hours=10"),
    "show_price_history": Rule(may=EVERYONE, query="?gpu=V100"),
    "show_plan": Rule(may=EVERYONE),
    "make_plan": Rule(may=EVERYONE, form={"hours": "10"}),
    "compare_buying": Rule(may=EVERYONE, query="?gpu=V100&purchase=20000"),
    "show_costs": Rule(may=COUNTS),
    "sum_projects": Rule(may=COUNTS),
    "list_idle": Rule(may=COUNTS),
    "show_margin": Rule(may=HOUSE),
    "download_focus": Rule(may=PAYS),
    "show_invoice": Rule(may=PAYS, states=frozenset({404})),
    "set_project_budget": Rule(may=OWNER, form={"amount": "500"}),
    "remove_project_budget": Rule(may=OWNER, states=frozenset({404})),
    "list_lessons": Rule(may=EVERYONE),
    "show_lesson": Rule(may=EVERYONE),
    "check_lesson": Rule(may=EVERYONE, form={"answer": "second"}),
    "show_certificate": Rule(may=EVERYONE),
}

ADDRESSES: dict[str, dict[str, str]] = {}
"""Parts of the address of a page, where they differ from the ids of acme's things below."""


def address(page: ConsolePage, tenants: Tenants) -> str:
    ids = tenants.ids
    words = {
        "project": ids["project"], "instance": "web", "snapshot": "before", "member": ids["viewer"],
        "key": ids["spare"], "session": ids["session"], "host": ids["host"], "account": "none",
        "terminal": "trm_0000000000000000", "lesson": "cloud", "month": "2020-01", **ADDRESSES.get(page.name, {}),
    }  # fmt: skip
    return (PREFIX + page.path).format(**words)
