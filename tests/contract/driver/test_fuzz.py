"""Text of every kind passes through an engine unchanged: many examples on the simulated engine, a few on a
real one."""

import string

from hypothesis import given
from hypothesis import strategies as st
from tests.contract.driver.grounds import Ground, examples

TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=200)
NASTY = st.sampled_from(
    [
        "$(id)",
        "`id`",
        "; rm -rf /",
        "{{ config_get('x') }}",
        "{% include '/etc/passwd' %}",
        "\\",
        "'\"",
        "\r\n",
        "--x",
    ]
)
WORDS = st.lists(st.one_of(TEXT, NASTY), min_size=1, max_size=6)
LINE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=60)
NAME = st.from_regex(r"[a-z]([a-z0-9-]{0,40}[a-z0-9])?", fullmatch=True)
VARIABLES = st.dictionaries(
    st.text(string.ascii_uppercase + "_", min_size=1, max_size=20).map("T_".__add__), TEXT, max_size=4
)


def test_machine_metadata_survives_unchanged(ground: Ground) -> None:
    @examples(ground)
    @given(
        hostname=NAME,
        user_data=st.one_of(TEXT, NASTY).filter(lambda text: not text.startswith("#!")),
        environment=VARIABLES,
        comment=LINE,
        command=WORDS.map(lambda words: ("echo", *words)),
    )
    def comes_back(
        hostname: str, user_data: str, environment: dict[str, str], comment: str, command: tuple[str, ...]
    ) -> None:
        machine = ground.up(
            hostname=hostname,
            user_data=user_data,
            environment=environment,
            authorized_keys=(f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ {comment}",),
            command=command,
        )
        assert ground.words(machine, "hostname").decode() == f"{hostname}\n"
        assert ground.words(machine, "cat", "/etc/teraflock/user-data").decode() == user_data
        printed = ground.words(machine, "printenv").decode()
        assert all(f"{name}={value}\n" in printed for name, value in environment.items())
        assert comment in ground.words(machine, "cat", "/root/.ssh/authorized_keys").decode()
        ground.driver.delete(machine.handle)

    comes_back()
