"""The guest service for the edges: commands, files and logs. These calls ask the engine directly and change no row."""

from collections.abc import Sequence

from teraflock.base.errors import Conflict
from teraflock.instance.archive import OpenFile
from teraflock.instance.changes import InstanceChanges, handle_of_view
from teraflock.instance.driver import Capability, CommandState, Ran
from teraflock.instance.lookup import cannot, found, found_or_deleted
from teraflock.instance.model import Access, Instance, Log
from teraflock.instance.output import store as outputs
from teraflock.instance.states import Phase
from teraflock.tenant.model import By, ProjectId


class GuestService:
    def __init__(self, changes: InstanceChanges) -> None:
        self._changes = changes
        self._database = changes.database

    def run(
        self,
        project: ProjectId,
        ref: str,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds_max: float = 60,
        by: By | None = None,
    ) -> Ran:
        """Run a command. The audit log has who ran which program, but no arguments: they may contain secrets."""
        with self._database.read() as tx:
            view = found(tx, project, ref)
            self._changes.check_can(view.instance, Capability.EXEC, "run commands")
            driver = self._changes.driver(view.instance)
        if view.instance.phase != Phase.RUNNING:
            raise cannot("run a command", view.instance)
        if by is not None:
            self._record(by, view.instance, command)
        return driver.run(handle_of_view(view), command, stdin=stdin, seconds_max=seconds_max)

    def _record(self, by: By, instance: Instance, command: Sequence[str]) -> None:
        program = command[0] if command else ""
        self._database.write(
            lambda tx: self._changes.audit.note(
                tx, by, "instance.exec", instance.id, name=instance.name, program=program
            )
        )

    def files(self, project: ProjectId, ref: str) -> OpenFile:
        """Return a function that opens files on the disk of an instance, running or stopped."""
        with self._database.read() as tx:
            view = found(tx, project, ref)
            self._changes.check_can(view.instance, Capability.FILES, "provide files")
            if view.instance.phase not in (Phase.RUNNING, Phase.STOPPED):
                raise cannot("provide files", view.instance)
            driver = self._changes.driver(view.instance)
        return lambda path: driver.file(handle_of_view(view), path)

    def log(self, project: ProjectId, ref: str, source: str | None = None) -> Log:
        """The log of the instance's command if it has one, otherwise its console. `source` asks for a certain log."""
        if source == "user-data":
            return self._user_data_log(project, ref)
        with self._database.read() as tx:
            view = found_or_deleted(tx, project, ref, self._changes.clock.now())
            instance, stored = view.instance, outputs.output(tx, view.instance.id)
            driver = self._changes.driver(instance) if instance.host_id else None
        if source == "command" and instance.access != Access.COMMAND:
            raise Conflict(
                f"`{instance.name}` was launched without a command", hint="`tera logs` shows its console"
            )
        if source == "console" or instance.access != Access.COMMAND:
            console = driver.console(handle_of_view(view)) if driver else b""
            return Log(source="console", text=console.decode("utf-8", "replace"), exit_code=None)
        is_running = driver is not None and instance.phase == Phase.RUNNING
        state = driver.command_state(handle_of_view(view)) if driver and is_running else None
        if state is not None:
            return Log(source="command", text=_text(state), exit_code=state.exit_code)
        return Log(source="command", text=stored or "", exit_code=instance.exit_code)

    def _user_data_log(self, project: ProjectId, ref: str) -> Log:
        """The log of its user-data, as long as its disk exists."""
        with self._database.read() as tx:
            view = found(tx, project, ref)
            instance = view.instance
            has_disk = instance.phase in (Phase.RUNNING, Phase.STOPPED)
            driver = self._changes.driver(instance) if has_disk else None
        if not instance.spec.user_data:
            raise Conflict(
                f"`{instance.name}` was launched without user-data", hint="`tera logs` shows its console"
            )
        state = driver.user_data_state(handle_of_view(view)) if driver else None
        if state is None:
            return Log(source="user-data", text="", exit_code=instance.user_data_exit_code)
        return Log(source="user-data", text=_text(state), exit_code=state.exit_code)


def _text(state: CommandState) -> str:
    return state.log.decode("utf-8", "replace")
