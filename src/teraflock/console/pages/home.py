"""The first page, and what the reader chooses for all pages: language and colours."""

from teraflock.console.answer import Answer, redirect
from teraflock.console.call import PageCall
from teraflock.console.cookies import LANGUAGE, THEME
from teraflock.console.language import NAMES
from teraflock.console.page import PREFIX, Pages
from teraflock.console.pages.sign_in import safe_next
from teraflock.tenant import rules
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission

pages = Pages()
THEMES = ("auto", "light", "dark")


@pages.get("/", scope=Scope.KEY)
def open_console(call: PageCall) -> Answer:
    """Go to the instances of the first project, or to the team for those who may not see instances."""
    for project in sorted(call.projects, key=lambda each: each.name != "default"):
        if Permission.INSTANCE_READ in rules.in_project(call.actor, project):
            return redirect(call.at("projects", project.name, "instances"))
    return redirect(call.at("team"))


@pages.post("/language", scope=Scope.PUBLIC)
def choose_language(call: PageCall) -> Answer:
    """Show all pages in this language."""
    code = call.form.text("language")
    return redirect(
        safe_next(call.form.text("next")) or f"{PREFIX}/", cookies={LANGUAGE: code if code in NAMES else ""}
    )


@pages.post("/theme", scope=Scope.PUBLIC)
def choose_theme(call: PageCall) -> Answer:
    """Show all pages in light or dark colours, or as the system does."""
    theme = call.form.text("theme")
    return redirect(
        safe_next(call.form.text("next")) or f"{PREFIX}/",
        cookies={THEME: theme if theme in THEMES[1:] else ""},
    )
