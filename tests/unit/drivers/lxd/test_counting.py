"""Traffic counters: existing counters are kept, and a new owner of an address starts at zero."""

import json
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.drivers.lxd import counting
from teraflock.drivers.lxd.counting import Counter

NAME = "tera_test_sent"
ADDRESSES = st.sampled_from([f"10.128.16.{number}" for number in range(2, 8)])
OWNERS = st.sampled_from(["ins_1", "ins_2", "ins_3"])


@given(
    found=st.dictionaries(ADDRESSES, OWNERS, max_size=5),
    wanted=st.dictionaries(ADDRESSES, OWNERS, max_size=5),
)
def test_changes_lead_to_the_wanted_counters(found: dict[str, str], wanted: dict[str, str]) -> None:
    there = [Counter(address, owner, "old") for address, owner in found.items()]
    now = {address: (owner, "old") for address, owner in found.items()}
    for line in counting.changes(NAME, there, wanted, "new").splitlines():
        verb, address = line.split()[0], line.split("{ ")[1].split()[0]
        if verb == "delete":
            del now[address]
        else:
            assert address not in now, "`create` fails if the counter exists"
            owner, epoch = line.split('"')[1].split()
            now[address] = (owner, epoch)
    assert {address: owner for address, (owner, _) in now.items()} == wanted
    for address, (owner, epoch) in now.items():
        assert epoch == ("old" if found.get(address) == owner else "new")


@given(word=st.text(min_size=1).filter(lambda word: not word.replace("_", "").replace("-", "").isalnum()))
def test_invalid_values_are_rejected(word: str) -> None:
    with pytest.raises(ValueError):
        counting.begin(NAME, Counter("10.0.0.1", word, "x"))
    with pytest.raises(ValueError):
        counting.table(NAME, [word])


PROBE = f"""
set -e
ip link set lo up
nft -f - <<'END'
{counting.table(NAME, ["tf00000001"])}{counting.begin(NAME, Counter("127.0.0.1", "ins_1", "first"))}
END
python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes(972), ("127.0.0.1", 9))'
nft -f - <<'END'
{counting.table(NAME, ["lo"])}
END
python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes(972), ("127.0.0.1", 9))'
{" ".join(counting.listing(NAME))}
"""


def test_counters_survive_a_rebuilt_table() -> None:
    if shutil.which("nft") is None or shutil.which("unshare") is None:
        pytest.skip("nft is not installed")
    command = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", PROBE]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0 and b"unshare" in done.stderr:
        pytest.skip("namespaces are not available")
    assert done.returncode == 0, done.stderr.decode()
    ((counter, count),) = counting.counters_from(done.stdout)
    assert counter == Counter("127.0.0.1", "ins_1", "first")
    assert count >= 1000, "972 bytes with their headers, and the ICMP error in response"
    assert count < 2000, "traffic to one of our bridges, which `lo` is now, is not counted"


def test_an_empty_set_is_read_as_none() -> None:
    answer = {"nftables": [{"metainfo": {}}, {"set": {"name": "guests", "stmt": [{"counter": None}]}}]}
    assert counting.counters_from(json.dumps(answer).encode()) == []
