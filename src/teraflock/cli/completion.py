"""`tera completion`: print the completion script for a shell."""

from typing import Final

import click

HELP: Final = """Print the completion script for a shell.

\b
  bash: tera completion bash > ~/.local/share/bash-completion/completions/tera
  zsh:  tera completion zsh > "${fpath[1]}/_tera"
  fish: tera completion fish > ~/.config/fish/completions/tera.fish
"""


@click.command(help=HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    from click.shell_completion import get_completion_class

    from teraflock.cli.main import tera

    kind = get_completion_class(shell)
    assert kind is not None, "click supports the three shells"
    click.echo(kind(tera, {}, "tera", "_TERA_COMPLETE").source())
