"""An operator adds a simulated cloud, lets a tenant use it, and the tenant rents a machine there."""

import time

from tests.story.cloud import Cloud

QUICK = ("--set", "style=cloud", "--set", "launch_seconds=0", "--set", "boot_seconds=0")


def answers(cloud: Cloud, name: str) -> None:
    """Wait until the server has opened the site and read it."""
    for _ in range(200):
        if cloud.ok("site", "show", name, "--json").json["state"] == "ready":
            return
        time.sleep(0.2)
    raise AssertionError("the site was never read")


def test_a_tenant_rents_where_the_operator_allows_it(cloud: Cloud) -> None:
    assert "simulated" in cloud.ok("site", "list").out
    cloud.ok("site", "add", "sky", "--kind", "simulated", *QUICK)
    answers(cloud, "sky")
    assert "sky: ok" in cloud.ok("site", "check", "sky").out
    shown = cloud.ok("site", "show", "sky").out
    assert "sim-1xv100" in shown
    assert "SIMULATED" in shown
    key = cloud.ok("org", "create", "red", "--owner", "ada@red", "--json").json["key"]
    tenant = cloud.as_user(key)
    launch = ("launch", "--name", "far", "--site", "sky", "--type", "sim-1xv100", "--wait")
    assert "Unknown site `sky`" in tenant.fails(*launch).err
    cloud.ok("site", "allow", "sky", "--org", "red")
    made = tenant.ok(*launch, "--restart-policy", "never", "--mode", "spot").out
    assert "running SIMULATED" in made
    assert "sky/sim-" in made
    seen = tenant.ok("show", "far", "--json").json
    assert (seen["site"], seen["mode"], seen["restart_policy"]) == ("sky", "spot", "never")
    assert "simulated (rented-0)" in tenant.ok("exec", "far", "--", "nvidia-smi").out
    assert "ssh -p 22 ubuntu@" in tenant.ok("show", "far").out
    assert "site.read" not in tenant.fails("site", "list").out
    rented = cloud.ok("host", "list", "--rented").out
    assert seen["id"] in rented
    assert seen["id"] not in cloud.ok("host", "list").out
    assert "0.3 USD per hour" in cloud.ok("host", "show", seen["id"]).out
    tenant.ok("delete", "far", "--yes")
    cloud.ok("site", "remove", "sky", "--yes")
    assert "sky" not in cloud.ok("site", "list").out


def test_what_is_wrong_with_a_site_is_said_in_one_sentence(cloud: Cloud) -> None:
    assert "nimbus" in cloud.fails("site", "add", "x", "--kind", "nimbus").err
    assert "colour" in cloud.fails("site", "add", "x", "--kind", "simulated", "--set", "colour=red").err
    assert "There is no site `nowhere`" in cloud.fails("site", "show", "nowhere").err


def test_upgrade_without_joined_hosts_says_so(cloud: Cloud) -> None:
    assert "No host has joined this server" in cloud.fails("host", "upgrade").err
    assert "There is no host `nowhere`" in cloud.fails("host", "upgrade", "nowhere").err
