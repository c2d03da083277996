"""`tera offers sources`: list the sources of offers."""

import click

from teraflock.app.local import Local
from teraflock.cli.offer.footer import age
from teraflock.cli.output import columns, write_json
from teraflock.cli.table import Column, render


@click.command(help="List the sources of offers, with the number of offers and the age of their prices.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def command(as_json: bool) -> None:
    with Local() as local:
        service = local.offers()
        sources, today = service.sources(), service.today()
    if as_json:
        write_json(sources)
        return
    head = [
        Column("SOURCE"),
        Column("OFFERS", right=True),
        Column("PRICE DATE"),
        Column("AGE", worth=6),
        Column("IMPORTED AT", worth=5),
        Column("FROM", flexible=True, worth=7),
    ]
    rows = [
        [
            source.name,
            f"{source.offers:,}",
            source.as_of or "varies",
            age(source.as_of, today) if source.as_of else "",
            source.imported_at,
            "shipped with Teraflock" if source.name == "shipped" else source.place,
        ]
        for source in sources
    ]
    click.echo(render(head, rows, columns()))
