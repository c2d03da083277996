"""Learn: four short lessons with steps to try, each with a checked exercise, and a certificate at the end.

The server keeps which lessons a member passed. The certificate has an address that anyone can check.
"""

from typing import Any, Final
from urllib.parse import urlencode

from teraflock.base.errors import BadInput, NotFound
from teraflock.client.transport import path_of
from teraflock.console.answer import Answer, redirect
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.renting import project_to_launch_in
from teraflock.tenant.admission import Scope
from teraflock.wire.instance import InstanceAnswer, InstancePage

pages = Pages()
LESSONS: Final = ("cloud", "card", "run", "money")
RIGHT: Final = {"cloud": "second", "card": "third", "run": "first", "money": "third"}
"""The right answer to the question of each lesson. The questions are in the templates."""
LABEL: Final = "lesson=first-run"
TRAINING: Final = (
    'python3 -c "from functools import reduce; w = reduce(lambda w, _: w - 0.1 * 2 * (w - 3), range(200), 0.0);'
    " print('weight', round(w, 3), 'loss', (w - 3) ** 2)\""
)
"""Gradient descent on one weight. It needs nothing but Python, so that it runs on every image."""
SIMULATED_TRAINING: Final = "echo weight 3.0 loss 0.0"
"""A simulated instance has no Python."""


@pages.get("/learn", scope=Scope.KEY)
def list_lessons(call: PageCall) -> Answer:
    """The lessons, and which of them are passed."""
    passed = call.services.lessons.passed(call.actor)
    return call.page("learn/list.html", section="learn", lessons=LESSONS, passed=passed)


@pages.get("/learn/certificate", scope=Scope.KEY)
def show_certificate(call: PageCall) -> Answer:
    """The certificate, for those who passed all lessons."""
    found = call.services.lessons.certificate_of(call.actor)
    if found is None:
        return redirect(call.at("learn"))
    address = call.origin + call.at("certificates", found.id)
    return call.page("learn/certificate.html", section="learn", certificate=found, address=address)


@pages.get("/certificates/{certificate}", scope=Scope.PUBLIC)
def check_certificate(call: PageCall) -> Answer:
    """A certificate for those who check it. They need its address and nothing else."""
    found = call.services.lessons.certificate(call.path["certificate"])
    return call.page("learn/check.html", certificate=found)


@pages.get("/learn/{lesson}", scope=Scope.KEY)
def show_lesson(call: PageCall) -> Answer:
    """One lesson with its exercise."""
    lesson = call.path["lesson"]
    if lesson not in LESSONS:
        raise NotFound("There is no such lesson", hint="Start again from the list of lessons")
    project = project_to_launch_in(call)
    return call.page(
        f"learn/{lesson}.html",
        section="learn",
        lesson=lesson,
        number=LESSONS.index(lesson) + 1,
        count=len(LESSONS),
        is_passed=lesson in call.services.lessons.passed(call.actor),
        answer=call.form.text("answer"),
        training=_training(call),
        launch=_launch_link(call, project) if project else "",
    )


@pages.post("/learn/{lesson}", scope=Scope.KEY, on_error=show_lesson)
def check_lesson(call: PageCall) -> Answer:
    """Check the exercise of a lesson."""
    lesson = call.path["lesson"]
    if lesson not in LESSONS:
        raise NotFound("There is no such lesson", hint="Start again from the list of lessons")
    if call.form.text("answer") != RIGHT[lesson]:
        raise BadInput("This answer is not right", hint="Read the lesson again and choose another answer")
    if lesson in ("run", "money") and (project := project_to_launch_in(call)):
        _check_work(lesson, _runs(call, project))
    done = call.services.lessons.passes(call.actor, lesson, set(LESSONS))
    following = next((each for each in LESSONS if each not in done), "certificate")
    return call.done(call.at("learn", following), "Right. Lesson passed")


def _runs(call: PageCall, project: str) -> list[InstanceAnswer]:
    """The instances of the exercise, including deleted ones."""
    query: dict[str, Any] = {"project": project, "label": (LABEL,), "gone": True, "limit": 200}
    return list(call.client.transport.get(path_of("instances"), InstancePage, **query).items)


def _check_work(lesson: str, runs: list[InstanceAnswer]) -> None:
    if lesson == "run" and not any(each.exit_code == 0 for each in runs):
        raise BadInput(
            f"No instance with the label `{LABEL}` has finished its command yet",
            hint="Launch it with the button above, wait until its command has ended, then check again",
        )
    held = [each for each in runs if each.state not in ("stopped", "gone", "deleted", "deleting", "failed")]
    if lesson == "money" and held:
        raise BadInput(
            f"`{held[0].name}` is still running and costs money", hint="Stop or delete it, then check again"
        )


def _training(call: PageCall) -> str:
    return SIMULATED_TRAINING if call.services.reality() == "simulated" else TRAINING


def _launch_link(call: PageCall, project: str) -> str:
    fields = {"access": "command", "command": _training(call), "labels": LABEL, "hours": "1"}
    return f"{call.at('projects', project, 'launch')}?{urlencode(fields)}"
