"""What a label of a host may be. Pure."""

import re
from collections.abc import Mapping

from teraflock.base.errors import BadInput
from teraflock.base.limits import LABEL_KEY, LABELS_MAX
from teraflock.base.names import check_label_key


def changed(labels: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """The labels of a host after changes. None removes a label."""
    for key, value in changes.items():
        check_pair(key, value)
    merged = {**labels, **changes}
    kept = {key: value for key, value in merged.items() if value is not None}
    if len(kept) > LABELS_MAX:
        raise BadInput(
            f"A host can have at most {LABELS_MAX} labels, not {len(kept)}",
            hint="Remove some of them: `KEY-`",
        )
    return kept


def check_pair(key: str, value: str | None) -> None:
    check_label_key(key)
    if key == "region":
        raise BadInput(
            "The region of a host is not a label, because prices depend on it",
            hint="Set it with `tera host set HOST --region REGION`. Launches can ask for `--on region=REGION`",
        )
    if value is not None and not re.fullmatch(LABEL_KEY, value):
        raise BadInput(
            f"`{value[:80]}` cannot be the value of a host label",
            hint="Use up to 63 letters, digits and `._/-`",
        )
