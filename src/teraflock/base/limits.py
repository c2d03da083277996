"""What names and orders may be. The API's types, the rules of the domain and the command line share these bounds."""

from typing import Final

NAME: Final = "[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
"""The name of an instance, a network, a volume, …: a valid label of a host name."""
NAME_CHARACTERS_MAX: Final = 63
PLACE: Final = "[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?"
"""The name of a site, a host or a region."""
PLACE_CHARACTERS_MAX: Final = 40
LABEL_KEY: Final = "[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?"
VARIABLE: Final = "[A-Za-z_][A-Za-z0-9_]{0,254}"
"""The name of an environment variable."""
REASON_CHARACTERS_MAX: Final = 500

NUMBER_MAX: Final = 2**63 - 1
"""The largest number that a column holds."""
PORT_MAX: Final = 65_535
LABELS_MAX: Final = 64

GPUS_MAX: Final = 64
CARDS_MAX: Final = 1024
"""Of one host: its cards and their slices."""
VCPUS_MAX: Final = 1024
RAM_BYTES_MIN: Final = 64 << 20
RAM_BYTES_MAX: Final = 64 << 40
DISK_BYTES_MIN: Final = 512 << 20
DISK_BYTES_MAX: Final = 1 << 50
TIME_LIMIT_SECONDS_MIN: Final = 1
TIME_LIMIT_SECONDS_MAX: Final = 366 * 86_400
USER_DATA_BYTES_MAX: Final = 65_536
INSTANCES_PER_LAUNCH_MAX: Final = 100
ALTERNATIVES_MAX: Final = 31


def whole(pattern: str) -> str:
    """For `Meta(pattern=…)`, which searches. `$` alone would accept a line break after the last character."""
    return rf"^{pattern}$(?!\n)"
