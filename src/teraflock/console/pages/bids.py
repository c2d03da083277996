"""Prices of auctions for idle GPUs: what a bid has to reach. Bids are made and changed on the pages of instances."""

from typing import Final

from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission

pages = Pages()
ROWS: Final = 50


@pages.get("/projects/{project}/bids", scope=Scope.PROJECT, may=Permission.INSTANCE_READ)
def list_bid_prices(call: PageCall) -> Answer:
    """The newest prices, the same for every project."""
    query = call.request.query
    gpu, region, after = query.text("gpu"), query.text("region"), query.text("after")
    page = call.client.bids.page(gpu=gpu, region=region, after=after, limit=ROWS)
    return call.page("bids/list.html", section="instances", page=page, gpu=gpu, region=region, after=after)
