"""Readings are packed without loss, joined into longer steps, and never shown to another tenant."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teraflock.fleet.alarms import reading_alarms
from teraflock.fleet.telemetry import packing, rules
from teraflock.fleet.telemetry.model import (
    CARD_FIELDS,
    CardReading,
    GuestCounters,
    HostReading,
    LastReading,
    ReadingPeriod,
    throttle_names,
)

NOW = datetime(2026, 11, 16, 12, 0, 5, tzinfo=UTC)
SLOT = "0000:01:00.0"
VALUE = st.none() | st.integers(0, packing.NONE - 1)
RECORD = st.tuples(*[VALUE] * len(CARD_FIELDS))
KEY = st.tuples(st.text(min_size=1, max_size=8), st.text("abc_1", max_size=4))


def read(
    before: LastReading | None = None, *cards: CardReading, at: datetime = NOW, off: int = 0
) -> LastReading:
    found = HostReading(host="lab", now=at + timedelta(seconds=off), cards=cards)
    return rules.last_reading(found, before, {}, at, simulated=False)


SAMPLES = st.dictionaries(st.integers(0, packing.SAMPLES - 1), RECORD, min_size=1, max_size=4)


@given(st.dictionaries(KEY, SAMPLES, max_size=3))
def test_packs_keep_every_value(pack: packing.Pack) -> None:
    assert packing.unpacked(packing.packed(pack)) == pack


@given(st.lists(st.tuples(KEY, st.integers(0, packing.SAMPLES - 1), RECORD), max_size=8))
def test_samples_are_added_in_order_and_once(samples: list[tuple[packing.Key, int, packing.Record]]) -> None:
    text, expected = "", dict[packing.Key, dict[int, packing.Record]]()
    for key, number, record in samples:
        mine = expected.setdefault(key, {})
        new = packing.added(text, number, {key: record})
        assert (new is None) == any(each >= number for each in mine)
        if new is not None:
            text, mine[number] = new, record
    assert (packing.unpacked(text) if text else {}) == expected


def test_values_out_of_range_are_clamped() -> None:
    row = (-5, 2**80, *[None] * (len(CARD_FIELDS) - 2))
    assert packing.unpacked(packing.packed({(SLOT, ""): {0: row}}))[SLOT, ""][0][:2] == (0, packing.NONE - 1)


def test_invented_cards_do_not_fill_the_database() -> None:
    """A host has other cards in every reading. The first ones are kept, and those that it had before go on."""
    content = ""
    for number in range(packing.SAMPLES):
        invented = {(f"{number}-{card}", ""): (1,) * len(CARD_FIELDS) for card in range(1024)}
        added = packing.added(content, number, {("kept", ""): (2,) * len(CARD_FIELDS), **invented})
        assert added is not None
        content = added
    pack = packing.unpacked(content)
    assert len(pack) == packing.SERIES_MAX
    assert len(pack["kept", ""]) == packing.SAMPLES


def test_longer_steps_have_means_last_counters_and_all_throttle_reasons() -> None:
    cards = [
        CardReading(slot=SLOT, utilisation_percent=percent, energy_millijoules=energy, throttle_reasons=bits)
        for percent, energy, bits in ((10, 100, 1), (50, 900, 4), (None, None, None))
    ]
    pack = ""
    for number, card in enumerate(cards):
        pack = packing.added(pack, number, rules.sample_of(read(None, card))) or ""
    joined = dict(zip(CARD_FIELDS, rules.joined(packing.unpacked(pack))[SLOT, ""], strict=True))
    assert joined["utilisation_percent"] == 30
    assert joined["energy_millijoules"] == 900
    assert joined["throttle_reasons"] == 5
    assert joined["power_milliwatts"] is None
    assert throttle_names(5) == ("power cap",)


def test_rates_come_from_counters_and_survive_a_restart_of_the_guest() -> None:
    def guest(seconds: int, received: int) -> GuestCounters:
        return GuestCounters(
            instance_id="ins_1", cpu_nanoseconds=seconds * 10**9, received_bytes=received, ram_used_bytes=7
        )

    def after(before: LastReading | None, guests: GuestCounters, at: datetime) -> LastReading:
        found = HostReading(host="lab", now=at, guests=(guests,))
        return rules.last_reading(found, before, {}, at, simulated=False)

    first = after(None, guest(100, 1000), NOW)
    assert first.guests[0].cpu_millicores is None
    second = after(first, guest(115, 6000), NOW + timedelta(seconds=10))
    assert (second.guests[0].cpu_millicores, second.guests[0].received_bytes_per_second) == (1500, 500)
    third = after(second, guest(1, 0), NOW + timedelta(seconds=20))
    assert third.guests[0].cpu_millicores is None
    late = after(second, guest(215, 0), NOW + timedelta(hours=1))
    assert late.guests[0].cpu_millicores is None


def test_a_series_has_only_the_time_in_which_the_instance_held_the_card() -> None:
    text = ""
    for number, holder in enumerate(("ins_a", "ins_a", "", "ins_b")):
        card = CardReading(slot=SLOT, instance_id=holder, utilisation_percent=number)
        reading = LastReading(at=NOW, simulated=False, cards=(card,))
        text = packing.added(text, number, rules.sample_of(reading)) or ""
    pack = packing.unpacked(text)
    start = rules.pack_start_us(NOW, rules.FINE_SECONDS)
    until = NOW + timedelta(seconds=60)
    (mine,) = rules.series_of({start: pack}, ReadingPeriod.HOUR, until, instance="ins_a")
    assert mine.values["utilisation_percent"] == (0, 1)
    every = rules.series_of({start: pack}, ReadingPeriod.HOUR, until)
    assert sorted(each.instance_id for each in every) == ["", "ins_a", "ins_b"]


def kinds(before: LastReading | None, now: LastReading) -> list[str]:
    return [alarm.kind for alarm in reading_alarms("lab", before, now)]


def test_each_alert_is_raised_once_and_ends() -> None:
    fine = CardReading(slot=SLOT, temperature_celsius=60, xid=0, ecc_uncorrected=0)
    calm = read(None, fine)
    assert kinds(None, calm) == []
    bad = replace(fine, temperature_celsius=rules.HOT_CELSIUS, xid=79, ecc_uncorrected=2)
    hot = read(calm, bad, off=9)
    assert kinds(calm, hot) == ["host.xid", "host.ecc", "host.hot", "host.clock-off"]
    wavering = read(hot, replace(bad, temperature_celsius=rules.COOL_CELSIUS), off=9)
    assert kinds(hot, wavering) == []
    cool = read(wavering, replace(bad, temperature_celsius=60))
    assert kinds(wavering, cool) == ["host.cool", "host.clock-right"]
    gone = read(cool)
    assert kinds(cool, gone) == ["host.card-lost"]
    still = read(gone)
    assert (kinds(gone, still), still.lost) == ([], (SLOT,))
    back = read(still, replace(bad, temperature_celsius=60))
    assert kinds(still, back)[0] == "host.card-back"
    assert back.lost == ()


def test_slices_that_go_are_not_lost_cards() -> None:
    divided = read(None, CardReading(slot=SLOT), CardReading(slot=f"{SLOT}/MIG-1"))
    assert kinds(divided, read(divided, CardReading(slot=SLOT))) == []
