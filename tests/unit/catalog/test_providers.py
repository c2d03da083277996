"""Providers: looking up names, and facts with their evidence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import UnknownName
from teraflock.catalog.providers import (
    Fact,
    Provider,
    ProviderFacts,
    all_providers,
    find_provider,
    provider_facts,
    provider_id,
)

SURVEYED = "tencent alibaba baidu huawei genesis lambda ibm oci azure vast gcp aws paperspace colab"
WITH_FACTS = f"{SURVEYED} runpod nebius do hyperstack ovhcloud scaleway verda".split()


@pytest.mark.parametrize(
    ("text", "known_id"),
    [
        ("Tencent Cloud", "tencent"),
        ("腾讯云", "tencent"),
        ("Alibaba Cloud", "alibaba"),
        ("Baidu Cloud", "baidu"),
        ("Huawei Cloud", "huawei"),
        ("Genesis Cloud", "genesis"),
        ("Lambda Labs", "lambda"),
        ("lambdalabs", "lambda"),
        ("IBM Cloud", "ibm"),
        ("Oracle Cloud (OCI)", "oci"),
        ("Azure N-series", "azure"),
        ("Vast.ai", "vast"),
        ("vastai", "vast"),
        ("Google Compute Engine", "gcp"),
        ("Amazon EC2", "aws"),
        ("AWS", "aws"),
        ("Paperspace CORE", "paperspace"),
        ("Paperspace Gradient", "paperspace"),
        ("Google Colab", "colab"),
        ("(own laptop)", "own"),
        ("DigitalOcean", "do"),
        ("datacrunch", "verda"),
        ("Prime Intellect", "primeintellect"),
    ],
)
def test_a_provider_is_found_by_any_of_its_names(text: str, known_id: str) -> None:
    assert find_provider(text).id == known_id
    assert provider_id(text) == known_id


def test_every_name_means_one_provider() -> None:
    ids = [each.id for each in all_providers()]
    assert len(set(ids)) == len(ids)
    for provider in all_providers():
        for name in provider.names:
            assert find_provider(name) == provider, name


def test_every_cloud_of_the_real_catalog_is_known() -> None:
    folders = (
        "aws azure cudo do fluidstack gcp hyperbolic hyperstack ibm lambda mithril nebius oci ovhcloud"
        " paperspace primeintellect runpod scaleway scp seeweb shadeform vast verda yotta"
    )
    assert {find_provider(folder).id for folder in folders.split()} == set(folders.split())


def test_an_unknown_provider_is_an_error_in_queries_but_not_in_imports() -> None:
    with pytest.raises(UnknownName) as caught:
        find_provider("Tencnt")
    assert "`tencent`" in caught.value.hint
    assert provider_id("Some New Cloud, Inc.") == "some-new-cloud-inc"
    assert provider_id("") == "unnamed"


@given(st.text())
def test_the_id_of_an_id_is_itself(text: str) -> None:
    known_id = provider_id(text)
    assert known_id
    assert provider_id(known_id) == known_id


def test_the_surveyed_providers_and_some_others_have_facts() -> None:
    assert [each.id for each in all_providers() if each.facts] == WITH_FACTS
    assert [each.id for each in all_providers() if provider_facts(each.id)] == WITH_FACTS


@pytest.mark.parametrize("known_id", WITH_FACTS)
def test_every_fact_has_a_value_or_text(known_id: str) -> None:
    facts = provider_facts(known_id)
    assert facts is not None
    for fact in _all_facts(facts):
        assert fact.text or fact.value is not None
        assert fact.confirmed == (fact.evidence in {"sdk", "docs", "catalog", "run"})


@pytest.mark.parametrize(
    ("known_id", "field", "value", "confirmed"),
    [
        ("tencent", "billing_step_seconds", 1, True),
        ("tencent", "notice_seconds", 120, False),
        ("tencent", "regions", ("Guangzhou", "Shanghai", "Beijing", "Singapore"), False),
        ("lambda", "spot", False, False),
        ("azure", "notice_seconds", 30, True),
        ("ibm", "billing_minimum_seconds", 0, True),
        ("gcp", "billing_minimum_seconds", 60, True),
        ("aws", "notice_seconds", 120, True),
        ("paperspace", "billing_step_seconds", 3600, True),
    ],
)
def test_unconfirmed_facts_are_marked(known_id: str, field: str, value: object, confirmed: bool) -> None:
    fact = getattr(provider_facts(known_id), field)
    assert isinstance(fact, Fact)
    assert (fact.value, fact.confirmed) == (value, confirmed)


def test_costs_after_stopping_are_listed() -> None:
    for known_id in ("tencent", "oci", "azure", "paperspace"):
        facts = provider_facts(known_id)
        assert facts is not None
        assert facts.stop_billing, known_id


def test_facts_have_the_right_types() -> None:
    for known_id in WITH_FACTS:
        facts = provider_facts(known_id)
        assert facts is not None
        for fact in (facts.billing_step_seconds, facts.billing_minimum_seconds, facts.notice_seconds):
            assert fact is None or fact.value is None or type(fact.value) is int
        for fact in (facts.spot, facts.bid, facts.resize):
            assert fact is None or fact.value is None or type(fact.value) is bool


def test_own_servers_are_a_provider() -> None:
    own = find_provider("own servers")
    assert isinstance(own, Provider)
    assert (own.id, own.kind) == ("own", "own")


def _all_facts(facts: ProviderFacts) -> list[Fact]:
    found: list[Fact] = []
    for field in facts.__struct_fields__:
        value = getattr(facts, field)
        if isinstance(value, Fact):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(value)
    return found
