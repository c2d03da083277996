"""The fits for other cards: they recover a known law and predict a held-out H200 with fewer SMs."""

import msgspec
import pytest
from lab.fit_cards import Judged, fit
from lab.fit_split import off, shared_operations
from lab.public import PublicStep

from teraflock.catalog.cards import card
from teraflock.estimate.bounds import CLASSES, card_model
from teraflock.estimate.estimator import Estimator, step_of
from teraflock.workload.model import Workload


def test_sm_shares_predict_an_h200_with_fewer_sms() -> None:
    rows, shipped = shared_operations()[::7], card_model()
    all_shared = msgspec.structs.replace(
        shipped, sm_share=dict.fromkeys(shipped.sm_share, 1.0), batch_norm=[1.0, 0.0]
    )
    none_shared = msgspec.structs.replace(
        shipped, sm_share=dict.fromkeys(shipped.sm_share, 0.0), batch_norm=[0.0, 0.0]
    )
    found = off(rows, shipped, [66, 32])
    assert found < 0.2
    assert found < 0.8 * min(off(rows, each, [66, 32]) for each in (all_shared, none_shared))


def test_the_fit_finds_how_age_slows_cards() -> None:
    law = {**dict.fromkeys(CLASSES, 0.0), "convolution": 0.3, "matmul": 0.1, "rest": 0.2}
    model, rows = card_model(), []
    for name, precision in (("resnet50", "amp-fp16"), ("vgg16", "fp16"), ("vit_b_16", "amp-fp16")):
        workload = Workload(model=name, batch=256, precision=precision, optimizer="sgd")
        estimator = Estimator(workload)
        step = step_of(estimator, estimator.scene())
        # Cards with the full tensor rate: the matrix products of others do not depend on their age.
        for gpu in ("V100-SXM2", "RTX6000", "A100-SXM4-40", "A6000", "RTX6000Ada"):
            bare = PublicStep(card(gpu), workload, "law", 1.0, step)
            seconds = Judged(bare, model).seconds(law)
            rows.append(Judged(PublicStep(card(gpu), workload, "law", seconds, step), model))
    found = fit(rows)
    assert found["convolution"] > found["matmul"]
    for each in rows:  # the slopes themselves are shrunk towards 0, because tables have errors
        assert each.seconds(found) == pytest.approx(each.row.seconds, rel=0.05)
        assert each.seconds(dict.fromkeys(CLASSES, 0.0)) < each.seconds(found)
