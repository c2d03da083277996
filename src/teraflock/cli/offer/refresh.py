"""`tera offers refresh`: import a catalog from a URL if it has changed."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
from msgspec.structs import replace

from teraflock.app.local import Local
from teraflock.base.clock import today
from teraflock.base.errors import BadInput, TeraflockError, unknown_name
from teraflock.cli.offer.importing import check_source, layout_of, print_report
from teraflock.cli.output import complain, remark, write_json
from teraflock.cli.progress import ProgressLine
from teraflock.offer.dates import day_of_prices
from teraflock.offer.fetch import TIMEOUT_SECONDS, fetch
from teraflock.offer.importers import READERS
from teraflock.offer.imports import import_offers
from teraflock.offer.model import Source
from teraflock.offer.tally import Origin, Report

HELP: Final = """Download a catalog from a URL and import it as `tera offers import` does.

Give the URL once; it is stored with SOURCE. Without SOURCE, refreshes every source that has a URL. The URL points to a
CSV file, or a zip or tar archive of a catalog. If the server has a `.sha256` file next to it, the download must match
that checksum. An incomplete download changes nothing.

\b
Examples:
  tera offers refresh skypilot --url https://example.org/catalogs.tar.gz
  tera offers refresh
"""


@click.command(help=HELP)
@click.argument("source", required=False)
@click.option("--url", help="URL of the catalog; stored for the next refresh.")
@click.option("--layout", type=click.Choice(list(READERS)), help="Layout of the files.")
@click.option("--sha256", default="", metavar="HEX", help="Expected checksum of the download.")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=TIMEOUT_SECONDS, show_default=True,
              metavar="SECONDS", help="Stop if the server sends nothing for this long.")  # fmt: skip
@click.option(
    "--as-of",
    metavar="DATE",
    help="Date of the prices.  [default: of the commit in the archive, else from the server]",
)
@click.option("--force", is_flag=True, help="Download and import even if nothing has changed.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a JSON list of reports, one for each source that changed.",
)
def command(
    source: str | None, url: str | None, layout: str | None, sha256: str, timeout: float, as_of: str | None,
    force: bool, as_json: bool,
) -> None:  # fmt: skip
    with Local() as local:
        day = day_of_prices(as_of, today(local.clock)).isoformat() if as_of else ""
        reports: list[Report] = []
        failed: TeraflockError | None = None
        for each in _targets(local, source, url, layout):
            try:
                report = _refresh(local, each, sha256=sha256, timeout=timeout, day=day, force=force)
            except TeraflockError as error:
                if failed:  # the last error is raised at the end; earlier ones are printed here
                    complain(failed.sentence, failed.hint)
                failed = error  # continue: one unreachable source must not stop the others
                continue
            if report is None:
                remark(f"{each.name}: unchanged since {each.imported_at}")
            else:
                reports.append(report)
                if not as_json:
                    print_report(report, as_json=False)
    if as_json:
        write_json(reports)
    if failed:
        raise failed


def _targets(local: Local, name: str | None, url: str | None, layout: str | None) -> list[Source]:
    known = {source.name: source for source in local.offers().sources()}
    if name is None:
        if url:
            raise BadInput(
                "`--url` needs the name of a source", hint="Write `tera offers refresh SOURCE --url …`"
            )
        if targets := [source for source in known.values() if source.url]:
            return targets
        raise BadInput(
            "No source has a URL yet", hint="Set one with `tera offers refresh SOURCE --url https://…`"
        )
    check_source(name)
    before = known.get(name)
    layout = layout or (before.layout if before else layout_of(name))
    if url and not (before and (before.url, before.layout) == (url, layout)):
        return [Source(name=name, layout=layout, import_number=0, place=url, checksum="", as_of="", imported_at="",
                       offers=0, currencies="", url=url)]  # fmt: skip
    if before is None:
        raise unknown_name("source", name, known, see="`tera offers sources` lists them")
    if not before.url:
        raise BadInput(f"The source `{name}` has no URL yet", hint="Set one with `--url`")
    if before.layout != layout:  # forces a download, because the old one was read in another layout
        return [replace(before, layout=layout, etag="", last_modified="", checksum="")]
    return [before]


def _refresh(
    local: Local, source: Source, *, sha256: str, timeout: float, day: str, force: bool
) -> Report | None:
    """Download and import one source. Return `None` if it has not changed."""
    database = local.database(to_write=True)
    # On the disk of the database, so that a full disk fails the download and not the import.
    with TemporaryDirectory(dir=local.home, prefix=".fetch-", ignore_cleanup_errors=True) as folder:
        with ProgressLine(f"Downloading {source.name}", "bytes") as progress:
            fetched = fetch(
                source.url,
                Path(folder),
                etag="" if force else source.etag,
                last_modified="" if force else source.last_modified,
                sha256=sha256,
                timeout_seconds=timeout,
                progress=progress,
            )
        if fetched is None or (fetched.sha256 == source.checksum and not force):
            return None
        latest = today(local.clock).isoformat()
        dated = day or min(fetched.day, latest)  # a server's clock may be ahead
        origin = Origin(
            source=source.name,
            layout=source.layout,
            path=fetched.path,
            day_of=lambda file: dated,
            checksum=fetched.sha256,
            url=source.url,
            etag=fetched.etag,
            last_modified=fetched.last_modified,
        )
        with ProgressLine("Reading", "rows") as progress:
            return import_offers(database, local.rates, local.clock, origin, progress=progress)
