"""One request as the handler of a page gets it: who asks, in which project, and the client that acts for them."""

from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, unquote

from markupsafe import Markup

from teraflock.base.errors import TeraflockError
from teraflock.base.ids import id_at
from teraflock.client import Client
from teraflock.console.answer import Answer, redirect
from teraflock.console.cookies import FLASH, THEME, csrf_token
from teraflock.console.language import Language
from teraflock.console.navigation import sections_for
from teraflock.console.page import PREFIX
from teraflock.console.render import Renderer
from teraflock.console.request import BrowserRequest, Form
from teraflock.console.services import ConsoleServices
from teraflock.console.transport import InProcessTransport
from teraflock.tenant import rules
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.rules import Permission
from teraflock.tenant.session.model import Browser

PROJECTS_MAX: Final = 100
"""How many projects the switch in the navigation lists."""
ANNOUNCEMENTS_MAX: Final = 3
"""How many announcements a page shows."""


class PageCall:
    def __init__(
        self,
        services: ConsoleServices,
        renderer: Renderer,
        request: BrowserRequest,
        language: Language,
        *,
        path: dict[str, str],
        actor: Actor | None = None,
        secret: str = "",
        project: Project | None = None,
    ) -> None:
        self.services = services
        self._renderer = renderer
        self.request = request
        self.language = language
        self.path = path
        self._actor = actor
        self.secret = secret
        self._project = project
        self.form = Form()
        self.error: TeraflockError | None = None
        """The error of the action that this page shows."""
        self.status = 200
        self.now = services.clock.now()

    @property
    def actor(self) -> Actor:
        assert self._actor is not None, "a public page has no actor"
        return self._actor

    @property
    def project(self) -> Project:
        assert self._project is not None, "only a page with scope `project` has a project"
        return self._project

    @property
    def browser(self) -> Browser:
        return Browser(self.request.address, self.request.agent)

    @cached_property
    def client(self) -> Client:
        """Acts as the reader, in the project of the page."""
        services = self.services
        transport = InProcessTransport(
            services.ask,
            self.secret,
            project=self._project.id if self._project else "",
            address=self.request.address,
            random_bytes=services.random_bytes,
        )
        return Client("", "", transport=transport)

    @cached_property
    def projects(self) -> tuple[Project, ...]:
        """The projects of the reader, as many as the switch in the navigation lists."""
        return self.services.tenants.projects.page(self.actor, limit=PROJECTS_MAX)

    def text(self, message: str, /, **values: object) -> Markup:
        return self.language.text(message, **values)

    def may(self, permission: Permission | str) -> bool:
        """Whether the reader has a permission in the project of the page; without one, in the organisation."""
        actor, project = self.actor, self._project
        held = rules.in_project(actor, project) if project else rules.anywhere(actor)
        return Permission(permission) in held

    def url(self, *parts: str) -> str:
        """The address of a page of this project. Each part is one segment."""
        return self.at("projects", self.project_ref, *parts)

    @property
    def live(self) -> str:
        """The address of the project's events since this page was read. Without the time, one that happens before the
        browser has opened the stream would be missed."""
        return f"{self.url('live')}?after={id_at('evt', self.now)}"

    def at(self, *parts: str) -> str:
        """The address of a page outside of projects."""
        return "/".join((PREFIX, *(quote(part, safe="") for part in parts)))

    @property
    def project_ref(self) -> str:
        return self.ref_of(self.project)

    def ref_of(self, project: Project | None) -> str:
        """A project in addresses: its name, or its id if it belongs to another organisation."""
        if project is None:
            return ""
        return project.name if project.organisation_id == self.actor.organisation_id else project.id

    @property
    def here(self) -> str:
        """The address to return to after a choice. After a form that is the page that had it."""
        request = self.request
        return request.target if request.method != "POST" else request.came_from or request.path

    @property
    def theme(self) -> str:
        chosen = self.request.cookies.get(THEME, "")
        return chosen if chosen in ("light", "dark") else "auto"

    @property
    def origin(self) -> str:
        """The address of this server, as the browser sees it."""
        return f"{'https' if self.request.is_secure else 'http'}://{self.request.headers.get('host', '')}"

    # Answers

    def page(self, template: str, /, *, section: str = "", nonce: str = "", **values: Any) -> Answer:
        """A whole page. With an error, its status is that of the error."""
        flash = unquote(self.request.cookies.get(FLASH, ""))
        shown = {**self._shell(section), **values, "flash": flash, "nonce": nonce}
        body = self._renderer.rendered(template, {**self._base(), **shown})
        return Answer(status=self.status, body=body, cookies={FLASH: ""} if flash else {}, nonce=nonce)

    def part(self, template: str, /, **values: Any) -> Answer:
        """A part of a page, which htmx puts in its place."""
        body = self._renderer.rendered(template, {**self._base(), **values})
        return Answer(status=self.status, body=body)

    def done(self, to: str, message: str, /, **values: object) -> Answer:
        """After an action: go to a page that says what was done."""
        return redirect(to, cookies={FLASH: quote(self.language.text(message, **values).unescape())})

    def _base(self) -> dict[str, Any]:
        return {
            "call": self,
            "t": self.language.marked,
            "said": self.language.said,
            "changes": self.language.changes,
            "now": self.now,
            "error": self._spoken_error(),
            "csrf": csrf_token(self.secret) if self.secret else "",
            "may": self.may,
            "all_simulated": self.services.reality() == "simulated",
        }

    def _spoken_error(self) -> TeraflockError | None:
        """The error of the action in the language of the page."""
        if self.error is None:
            return None
        say = self.language.say
        return TeraflockError(say(self.error.sentence), hint=say(self.error.hint))

    def _shell(self, section: str) -> dict[str, Any]:
        """What the layout shows around a page. It is one value, so that no value of a page hides a part of it."""
        shell: dict[str, Any] = {"section": section}
        if self._actor is not None:
            tenants, actor = self.services.tenants, self._actor
            projects = self.projects
            first = next((each for each in projects if each.name == "default"), None)
            project = self._project or first or (projects[0] if projects else None)
            shell |= {
                "news": self.services.news(actor)[:ANNOUNCEMENTS_MAX],
                "organisation": tenants.organisations.own(actor).name,
                "projects": projects,
                "project": project,
                "sections": sections_for(actor, project),
            }
        return {"shell": shell, "actor": self._actor}
