"""Keeps transformers in eager mode. Otherwise it takes fake tensors for a compiler's and builds unneeded masks."""

import contextlib
import importlib
import sys
from collections.abc import Iterator
from unittest import mock


@contextlib.contextmanager
def transformers_eager() -> Iterator[None]:
    """Modules that are imported later copy the patched name, so transformers need not be loaded yet."""
    with contextlib.suppress(ImportError):  # the script's own import says what is missing, and where
        importlib.import_module("transformers.utils.generic")
    with contextlib.ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("transformers") and "is_tracing" in vars(module):
                stack.enter_context(mock.patch.object(module, "is_tracing", return_value=False))
        yield
