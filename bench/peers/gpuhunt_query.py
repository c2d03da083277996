"""Query gpuhunt for every A100 in a folder of its CSV files, and for every card in turn.

Runs in an environment with gpuhunt and without Teraflock. gpuhunt's reader loads the files as if they were downloaded,
so no network is used. They are in memory before the first query is measured. `python gpuhunt_query.py FOLDER REPEATS`
prints JSON.
"""

import json
import sys
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

WARM_UP = 3


def main(folder: Path, repeats: int) -> None:
    # Imported by name, because our type checker does not have them.
    catalogs: Any = import_module("gpuhunt._internal.catalog")
    storage: Any = import_module("gpuhunt._internal.storage")
    catalog = catalogs.Catalog(balance_resources=False, auto_reload=False)
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            items = list(storage.load(file, provider=path.stem))
        catalog.catalog[path.stem] = catalogs.ProviderCatalog(version="bench", items=items)
    catalog.loaded_at = time.monotonic()
    seconds = []
    for _ in range(WARM_UP + repeats):
        began = time.perf_counter()
        found = catalog.query(gpu_name="A100")
        seconds.append(time.perf_counter() - began)
    every = [item for of_provider in catalog.catalog.values() for item in of_provider.items]
    cards = sorted({item.gpu_name for item in every})
    began = time.perf_counter()
    in_turn = sum(len(catalog.query(gpu_name=name)) for name in cards)
    turn_seconds = (time.perf_counter() - began) / len(cards)
    figures = {
        "version": version("gpuhunt"),
        "offers": len(every),
        "prices": [item.price for item in found],
        "seconds": seconds[WARM_UP:],
        "cards": len(cards),
        "found_in_turn": in_turn,
        "turn_seconds": [turn_seconds],
    }
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
