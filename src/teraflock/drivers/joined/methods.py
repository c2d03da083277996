"""The calls that a server can make on a host, derived from the driver protocol. Nothing is written twice.

For each method of the protocol there is a struct for its arguments and the type of its result, so that both ends
encode and check the same thing.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec

from teraflock.instance.copy.model import CopyDriver, VolumeCopyDriver
from teraflock.instance.driver import ComputeDriver, GuestFile
from teraflock.instance.terminal.model import TerminalDriver
from teraflock.network.fabric import FabricDriver
from teraflock.network.naming import NamingDriver

LOCAL: Final = frozenset({"boot_time_max", "types"})
"""The server answers these itself: they must not call the engine."""
FILE: Final = "file"
PACK: Final = "pack_disk"
PACK_VOLUME: Final = "pack_volume"
KEEP: Final = "keep_image"
KEEP_VOLUME: Final = "keep_volume"
TERMINAL: Final = "open_terminal"
FileHead: Final = msgspec.defstruct(
    "FileHead",
    [(each.name, each.type) for each in msgspec.structs.fields(GuestFile) if each.name != "content"],
    frozen=True,
    kw_only=True,
)
"""A `GuestFile` without its content, which follows in pieces."""
STREAMS: Final[Mapping[str, object]] = {
    FILE: FileHead,
    PACK: FileHead,
    PACK_VOLUME: FileHead,
    TERMINAL: type(None),
    KEEP: type(None),
    KEEP_VOLUME: type(None),
}
"""Calls with a stream, and what they answer."""
SENT: Final = frozenset({FILE, PACK, PACK_VOLUME})
"""The host sends a file after the answer."""
TAKEN: Final = frozenset({KEEP, KEEP_VOLUME})
"""The host gets the stream before the answer."""
CONTENT: Final = "content"
"""The argument that is sent in pieces."""
ALONE: Final = frozenset(
    {
        "create", "start", "expose", "hide", "stop", "delete", "resize", "snapshot", "restore", "delete_snapshot",
        "publish",
    }
)  # fmt: skip
"""Calls that change an instance. A host makes one of them at a time for each instance."""


QUICK: Final = frozenset(
    {
        "hosts",
        "sightings",
        "look",
        "all_sent",
        "sent",
        "readings",
        "allow_out",
        "images",
        "datasets",
        "volumes",
        "enforce",
        "wire",
        "link",
        "know",
    }
)
"""Calls that read or set something small. An engine that hangs in one of them counts as down."""


class Method(msgspec.Struct, frozen=True):
    """One call: how to check its arguments, and the type of its result."""

    name: str
    signature: inspect.Signature
    arguments: type[msgspec.Struct]
    result: Any

    def packed(self, *positional: object, **named: object) -> bytes:
        """Encode the arguments of a call."""
        bound = self.signature.bind(*positional, **named)
        return msgspec.msgpack.encode(self.arguments(**bound.arguments))

    def unpacked(self, content: bytes) -> dict[str, Any]:
        """Decode the arguments of a call. Raise `msgspec.ValidationError` if they are not valid."""
        decoded = msgspec.msgpack.decode(content, type=self.arguments)
        return {name: getattr(decoded, name) for name in self.arguments.__struct_fields__}


def _method(name: str, declared: Callable[..., Any]) -> Method:
    hints = get_type_hints(declared)
    result = STREAMS[name] if name in STREAMS else _encodable(hints.pop("return"))
    hints.pop("return", None)
    signature = inspect.signature(declared)
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    parameters = [each for each in parameters if not (name in TAKEN and each.name == CONTENT)]
    fields = [(each.name, _encodable(hints[each.name])) for each in parameters]
    arguments = msgspec.defstruct(f"{name}_arguments", fields, frozen=True, kw_only=True)
    return Method(name, signature.replace(parameters=parameters), arguments, result)


def _encodable(hint: Any) -> Any:
    """An iterable of unknown kind travels as a tuple."""
    if get_origin(hint) in (Iterable, Sequence):
        return tuple.__class_getitem__((get_args(hint)[0], ...))
    return hint


def _declared() -> Iterable[tuple[str, Callable[..., Any]]]:
    for protocol in (ComputeDriver, TerminalDriver, FabricDriver, NamingDriver, CopyDriver, VolumeCopyDriver):
        for name, value in inspect.getmembers(protocol, inspect.isfunction):
            if not name.startswith("_") and name not in LOCAL:
                yield name, value


METHODS: Final[Mapping[str, Method]] = {name: _method(name, declared) for name, declared in _declared()}
