"""Errors that click finds read like our own."""

import click
import pytest

from teraflock.cli.usage_error import sentence_and_hint


@click.command()
@click.argument("purpose", type=click.Choice(["train", "serve"]), metavar="PURPOSE")
@click.option("--count", type=click.IntRange(1, 5))
@click.option("--least", type=click.IntRange(min=1))
@click.option("--role", type=click.Choice(["owner", "member"]), required=True)
def command(**_values: object) -> None:
    pass


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        ("train", "Missing option `--role`", "Choose `owner` or `member`. See `tera --help`"),
        ("--role owner", "Missing argument `PURPOSE`", "Choose `train` or `serve`. See `tera --help`"),
        (
            "train --role x",
            "Invalid value for `--role`: `x` is not one of `owner`, `member`",
            "See `tera --help`",
        ),
        (
            "train --role owner --count 9",
            "Invalid value for `--count`: 9 is not from 1 to 5",
            "See `tera --help`",
        ),
        (
            "train --role owner --least 0",
            "Invalid value for `--least`: 0 is less than 1",
            "See `tera --help`",
        ),
        (
            "train --role owner --cont 9",
            "No such option `--cont`",
            "Did you mean `--count`? See `tera --help`",
        ),
        ("train --role owner --zzz 9", "No such option `--zzz`", "See `tera --help`"),
    ],
)
def test_an_error_of_click_is_one_sentence_with_a_hint(words: str, sentence: str, hint: str) -> None:
    with pytest.raises(click.ClickException) as caught:
        command.main(words.split(), prog_name="tera", standalone_mode=False)
    assert sentence_and_hint(caught.value) == (sentence, hint)
