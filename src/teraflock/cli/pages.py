"""Lists that come in pages, and the project for requests whose path must name one."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from teraflock.base.errors import BadInput, Forbidden

if TYPE_CHECKING:
    from teraflock.client import Client

DEFAULT_PROJECT = "default"


def all_of(fetch: Callable[..., Any], *, at_most: int | None = None, **query: object) -> list[Any]:
    """The items of all pages, or the first `at_most`."""
    found: list[Any] = []
    after: str | None = ""
    while after is not None and (at_most is None or len(found) < at_most):
        page = fetch(after=after, **query)
        found += page.items
        after = page.next
    return found[:at_most]


def names_of(fetch: Callable[[], Any]) -> dict[str, str]:
    """Names by id. Empty if the user may not list them."""
    try:
        return {each.id: each.name for each in fetch()}
    except Forbidden:
        return {}


def project_ref(client: "Client", given: str | None) -> str:
    """The given project, otherwise the only one, otherwise `default`, as the server chooses it."""
    if given:
        return given
    names = [each.name for each in client.projects.list()]
    if len(names) == 1:
        return names[0]
    if DEFAULT_PROJECT in names:
        return DEFAULT_PROJECT
    raise BadInput("You have several projects", hint=f"Name one: `--project {names[0] if names else 'NAME'}`")
