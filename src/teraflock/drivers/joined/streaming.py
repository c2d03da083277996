"""The host's side of calls that take time or have a stream: files, packed disks and shells."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Final, TypeVar

import msgspec

from teraflock.base.errors import TeraflockError
from teraflock.drivers.joined.calling import PIECE_SECONDS_MAX
from teraflock.drivers.joined.channel import Channel
from teraflock.drivers.joined.frames import Done, Failed, FromServer, Piece, Typed, Working, failed
from teraflock.drivers.joined.methods import FileHead
from teraflock.instance.driver import GuestFile
from teraflock.instance.terminal.model import EngineTerminal

T = TypeVar("T")

LOG: Final = logging.getLogger("teraflock.host")
SEND_SECONDS_MAX: Final = 10.0
TERMINAL_SECONDS_MAX: Final = 3600.0 * 24
WORKING_SECONDS: Final = 2.0


def received(channel: Channel, seconds_max: float) -> FromServer:
    return channel.receive(FromServer, seconds_max=seconds_max)  # type: ignore[arg-type]


def waited(channel: Channel, work: "Future[T]") -> T:
    """Wait for a call, and tell the server meanwhile that it is in progress."""
    while True:
        try:
            return work.result(WORKING_SECONDS)
        except NotYet:
            channel.send(Working(), seconds_max=SEND_SECONDS_MAX)


def send_file(
    channel: Channel, opening: AbstractContextManager[GuestFile], method: str, threads: Executor
) -> None:
    """Send the head of a file, then its content. An error in between ends the content."""
    try:
        found = waited(channel, threads.submit(opening.__enter__))  # to pack a disk takes time
        with ExitStack() as leaving:
            leaving.push(opening.__exit__)
            fields = {name: getattr(found, name) for name in FileHead.__struct_fields__}
            head = msgspec.msgpack.encode(FileHead(**fields))
            streams = found.content is not None
            channel.send(Done(result=head, streams=streams), seconds_max=SEND_SECONDS_MAX)
            for piece in found.content or ():
                if piece:
                    channel.send(Piece(content=piece), seconds_max=PIECE_SECONDS_MAX)
            if streams:
                channel.send(Piece(content=b""), seconds_max=SEND_SECONDS_MAX)
    except TeraflockError as error:
        channel.send(failure(method, error), seconds_max=SEND_SECONDS_MAX)


def run_terminal(channel: Channel, opened: Callable[[], EngineTerminal]) -> None:
    """Connect a shell with the connection, until one of them ends. The connection is then closed."""
    try:
        terminal = opened()
    except TeraflockError as error:
        channel.send(failed(error), seconds_max=SEND_SECONDS_MAX)
        return
    reader = threading.Thread(target=_show, args=(terminal, channel), daemon=True)
    try:
        channel.send(Done(streams=True), seconds_max=SEND_SECONDS_MAX)
        reader.start()
        while isinstance(typed := received(channel, TERMINAL_SECONDS_MAX), Typed):
            if typed.columns:
                terminal.resize(typed.columns, typed.rows)
            if typed.content:
                terminal.write(typed.content)
    finally:
        terminal.close()
        channel.close()


def _show(terminal: EngineTerminal, channel: Channel) -> None:
    with suppress(OSError, TimeoutError):
        while content := terminal.read():
            channel.send(Piece(content=content), seconds_max=TERMINAL_SECONDS_MAX)
        channel.send(Piece(content=b""), seconds_max=SEND_SECONDS_MAX)
    channel.close()


def failure(name: str, error: Exception) -> Failed:
    if isinstance(error, TeraflockError):
        LOG.info("%s: %s %s", name, error.sentence, dict(error.context))
    else:
        LOG.error("%s failed", name, exc_info=error)
    return failed(error)
