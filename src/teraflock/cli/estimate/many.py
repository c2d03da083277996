"""`tera estimate --from`: estimate the workloads of a CSV file, one JSON object per line in the order of the file.

It reads and checks every row before it estimates the first, so that a mistake in the last row is reported at once.
"""

import csv
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from teraflock.base.errors import BadInput, TeraflockError
from teraflock.catalog.cards import all_cards
from teraflock.cli.output import remark
from teraflock.estimate.cards import known_peaks, reservable_bytes
from teraflock.estimate.speed import measured
from teraflock.estimate.words import EstimateWords, cards_from, question_from
from teraflock.wire.estimate import shape_estimate
from teraflock.workload.model import Workload, is_trace
from teraflock.workload.words import default_optimizer

if TYPE_CHECKING:
    from teraflock.catalog.model import Card
    from teraflock.workload.model import Workload

ROWS_PER_WORKER_MIN: Final = 12  # with fewer rows, starting a process takes longer than it saves
COLUMNS: Final = frozenset(
    [
        "model", "batch", "task", "seq", "image_size", "precision", "optimizer", "gradient_checkpointing", "lora_rank",
        "lora_targets", "lora_dtype", "load_in", "accumulate", "kv_cache", "compile", "gpu",
    ]
)  # fmt: skip
TRUE: Final = ("1", "true", "True")
ROWS_PER_CHUNK: Final = 2
"""Few, so that no worker is idle for long while another finishes."""


def answer_many(source: str, words: EstimateWords, own_cards: "Sequence[Card]") -> None:
    """Print one JSON object per line, in the order of the file. All CPU cores share the rows."""
    rows = list(_rows(source, words))  # reports a bad row before any estimate starts
    workers = min(os.cpu_count() or 1, len(rows) // ROWS_PER_WORKER_MIN)
    answered = partial(_line, words, own_cards)
    if workers < 2:
        lines: Iterable[bytes] = map(answered, rows)
        sys.stdout.buffer.writelines(lines)
    else:
        from concurrent.futures import ProcessPoolExecutor

        _load()
        with ProcessPoolExecutor(workers) as pool:
            sys.stdout.buffer.writelines(pool.map(answered, rows, chunksize=ROWS_PER_CHUNK))
    sys.stdout.flush()


def _load() -> None:
    """Load what every row needs, so that the worker processes inherit it."""
    from teraflock.estimate import answer  # noqa: F401

    measured()
    for card in all_cards():
        known_peaks(card)
        reservable_bytes(card)


def _line(words: EstimateWords, own_cards: "Sequence[Card]", row: "tuple[Workload, str, str]") -> bytes:
    from teraflock.estimate.answer import answer

    workload, gpu, where = row
    names = words.gpu or (() if words.memory_limit else (gpu or "all",))
    try:
        cards = cards_from(
            names,
            limits=words.memory_limit,
            clock=words.clock,
            power_limit=words.power_limit,
            own_cards=own_cards,
        )
        estimate = answer(workload, question_from(words, cards=cards))
    except TeraflockError as error:
        raise BadInput(f"{where}: {error.sentence}", hint=error.hint) from None
    return msgspec.json.encode(shape_estimate(estimate)) + b"\n"


def _rows(source: str, words: EstimateWords) -> "Iterator[tuple[Workload, str, str]]":
    from pathlib import Path

    from teraflock.workload.zoo import check

    try:
        text = Path(source).read_text("utf-8-sig")
    except OSError as error:
        raise BadInput(f"`{source}` cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"`{source}` is not a text file in UTF-8") from None
    reader = csv.DictReader(text.splitlines())
    missing = {"model", "batch"} - set(reader.fieldnames or ())
    if missing:
        names = ", ".join(f"`{each}`" for each in sorted(missing))
        raise BadInput(f"`{source}` has no column {names}")
    if ignored := [name for name in reader.fieldnames or () if name not in COLUMNS]:
        remark(f"`{source}`: columns that are not used: {', '.join(ignored)}")
    for row in reader:
        where = f"{source}, line {reader.line_num}"
        try:
            task = row.get("task") or "train"
            workload = Workload(
                model=row["model"] or "",
                task=task,
                batch=int(row["batch"] or ""),
                seq=int(row["seq"]) if row.get("seq") else None,
                image_size=int(row["image_size"]) if row.get("image_size") else None,
                precision=row.get("precision") or "fp32",
                optimizer=row.get("optimizer") or default_optimizer(row["model"], task),
                gradient_checkpointing=row.get("gradient_checkpointing") in TRUE,
                lora_rank=int(row["lora_rank"]) if row.get("lora_rank") else None,
                lora_targets=row.get("lora_targets") or "query-value",
                lora_dtype=row.get("lora_dtype") or "",
                load_in=row.get("load_in") or "",
                accumulate=int(row["accumulate"]) if row.get("accumulate") else 1,
                kv_cache=row.get("kv_cache") in TRUE,
                compile=words.compile or row.get("compile") in TRUE,
            )
            if not is_trace(workload.model):
                check(workload)
            yield workload, row.get("gpu") or "", where
        except ValueError:
            raise BadInput(f"{where}: expected a number") from None
        except TeraflockError as error:
            raise BadInput(f"{where}: {error.sentence}", hint=error.hint) from None
