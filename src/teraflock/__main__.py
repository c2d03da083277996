"""`python -m teraflock` is `tera`."""

from teraflock.cli.main import run

run()
