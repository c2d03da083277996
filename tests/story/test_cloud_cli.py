"""A tenant uses the command line: every command, with the simulated engine."""

import json
import signal
import stat
from pathlib import Path

import pytest
from tests.story.cloud import Cloud, told


def names(cloud: Cloud) -> set[str]:
    return {each["name"] for each in told(cloud, "ps")}


def test_instance_lifecycle(cloud: Cloud) -> None:
    launched = cloud.ok("launch", "--name", "web", "--vcpus", "2", "--ram", "4", "--wait")
    assert "running SIMULATED" in launched.out
    assert cloud.ok("exec", "web", "--", "hostname").out == "web\n"
    seen = told(cloud, "show", "web")
    assert {"id", "name", "state", "private_address", "ssh", "shape", "host", "created_at"} <= set(seen)
    assert (seen["state"], seen["simulated"], seen["shape"]["vcpus"]) == ("running", True, 2)
    assert {"host", "port", "user"} <= set(seen["ssh"])
    assert "web: stopped SIMULATED" in cloud.ok("stop", "web").out
    assert "web: running SIMULATED" in cloud.ok("start", "web").out
    before = told(cloud, "show", "web")["running_since"]
    assert "web: running SIMULATED" in cloud.ok("restart", "web").out
    assert told(cloud, "show", "web")["running_since"] > before
    cloud.ok("resize", "web", "--vcpus", "4", "--ram", "8")
    assert told(cloud, "show", "web")["shape"]["vcpus"] == 4
    assert "web: gone SIMULATED" in cloud.ok("delete", "web", "--yes").out
    assert "web" not in names(cloud)


def test_snapshot_restores_a_disk(cloud: Cloud) -> None:
    cloud.ok("launch", "--name", "disk", "--wait")
    write = ["exec", "disk", "--stdin", "--", "tee", "/root/x"]
    assert cloud.run(*write).code == 0
    assert cloud.ok("snapshot", "disk", "before").out == "disk/before: ready\n"
    cloud.ok("exec", "disk", "--", "rm", "/root/x")
    assert "needs confirmation" in cloud.fails("restore", "disk", "before").err
    assert "There is no snapshot `befor`" in cloud.fails("restore", "disk", "befor").err
    cloud.ok("restore", "disk", "before", "--yes")
    assert cloud.run("exec", "disk", "--", "cat", "/root/x").code == 0
    assert [each["name"] for each in told(cloud, "snapshot", "disk")] == ["before"]
    cloud.ok("snapshot", "disk", "before", "--delete")
    assert told(cloud, "snapshot", "disk") == []
    cloud.ok("delete", "disk", "--yes")


def test_gpus_are_exclusive_and_a_change_needs_confirmation(cloud: Cloud) -> None:
    cloud.ok("launch", "--name", "train", "--gpu", "V100", "--gpus", "2", "--wait")
    assert len(told(cloud, "show", "train")["gpus"]) == 2
    refused = cloud.fails("resize", "train", "--gpus", "4")
    assert refused.code == 2
    assert "restart" in refused.err
    assert "--yes" in refused.hint
    cloud.ok("resize", "train", "--gpus", "4", "--yes")
    assert len({each["slot"] for each in told(cloud, "show", "train")["gpus"]}) == 4
    assert "4× V100-SXM2" in cloud.ok("ps").out
    cloud.ok("delete", "train", "--yes")


def test_a_command_runs_and_its_log_and_exit_code_are_kept(cloud: Cloud) -> None:
    done = cloud.ok("launch", "--name", "job", "--wait", "--", "echo", "a b", "$HOME")
    assert (done.out, "job: stopped (exit 0) SIMULATED" in done.err) == ("a b $HOME\n", True)
    assert cloud.ok("logs", "job").out == "a b $HOME\n"
    assert "stopped (exit 0) SIMULATED" in cloud.ok("ps").out
    assert cloud.run("launch", "--name", "bad", "--command", "false", "--wait").code == 1
    assert "exit code 1" in cloud.ok("logs", "bad", "--follow").err
    assert cloud.run("exec", "job", "--", "true").code != 0
    cloud.ok("delete", "job", "bad", "--yes")


def test_several_instances_and_a_repeated_idempotency_key(cloud: Cloud) -> None:
    words = [
        "launch",
        "--name",
        "node",
        "--instances",
        "3",
        "--label",
        "team=vision",
        "--idempotency-key",
        "k1",
    ]
    first, second = told(cloud, *words, "--wait"), told(cloud, *words)
    assert [each["id"] for each in first] == [each["id"] for each in second]
    assert len({each["name"] for each in told(cloud, "ps", "--label", "team=vision")}) == 3
    cloud.ok("delete", *(each["name"] for each in first), "--yes")


def test_plan_on_an_own_host_is_launched(cloud: Cloud, tmp_path: Path) -> None:
    price = ["--purchase", "32000", "--years", "4", "--watts", "1600", "--power", "0.15"]
    cloud.ok("plan", "server", "add", "lab1", "--gpu", "V100", "--count", "4", *price)
    plan = tmp_path / "plan.json"
    plan.write_text(cloud.ok("plan", "--hours", "100", "--gpus", "4", "--json").out)
    done = cloud.ok("launch", "--name", "planned", "--plan", plan, "--wait")
    assert "as on `lab1`" in done.err
    assert told(cloud, "show", "planned")["shape"]["gpus"] == 4
    cloud.ok("delete", "planned", "--yes")


def test_images_shapes_hosts_and_events(cloud: Cloud) -> None:
    cloud.ok("launch", "--name", "mother", "--wait")
    cloud.ok("image", "create", "mine", "--from", "mother")
    assert {"base", "mine"} <= {each["name"] for each in told(cloud, "image", "list")}
    cloud.ok("launch", "--name", "child", "--image", "mine", "--wait")
    kinds = {each["details"].get("to") for each in told(cloud, "events", "--instance", "child")}
    assert "running" in kinds
    cloud.ok("delete", "mother", "child", "--yes")
    cloud.ok("image", "delete", "mine", "--yes")
    shape = told(cloud, "shapes", "--free")[0]
    assert shape["free"] > 0
    host = told(cloud, "host", "list")[0]["name"]
    assert "draining SIMULATED" in cloud.ok("host", "drain", host).out
    assert "ready SIMULATED" in cloud.ok("host", "resume", host).out
    assert told(cloud, "host", "show", host)["name"] == host
    for words in (["shapes"], ["image", "list"], ["events"]):
        assert "SIMULATED" in cloud.ok(*words).err


def test_tenants_see_nothing_of_each_other(cloud: Cloud) -> None:
    cloud.ok("launch", "--name", "secret", "--wait")
    key = cloud.ok("org", "create", "lab", "--owner", "ada").out.strip()
    ada = cloud.as_user(key)
    assert told(ada, "ps") == []
    assert ada.fails("show", "secret").err == ada.fails("show", "nothing").err.replace("nothing", "secret")
    assert ada.fails("host", "list").code == 1
    assert told(ada, "whoami")["organisation_name"] == "lab"
    project = told(ada, "project", "create", "speech")["id"]
    ada.fails("quota", "set", "--org", "lab", "--instances", "1")
    cloud.ok("quota", "set", "--org", "lab", "--instances", "2", "--projects", "2")
    assert "allows 2" in ada.fails("quota", "set", "--project", "speech", "--instances", "3").err
    ada.ok("quota", "set", "--project", "speech", "--instances", "1")
    assert "quota of organisation `lab`" in ada.fails("project", "create", "more").err
    shown = ada.ok("quota", "show", "--project", "speech").out
    assert "ORG USED" in shown
    assert told(cloud, "quota", "show", "--org", "lab")["quota"]["projects"] == 2
    assert told(cloud, "quota", "show", "--project", project)["organisation"]["name"] == "lab"
    ada.ok("member", "add", "bob", "--role", "member", "--in", "speech")
    bob_key = told(ada, "key", "create", "laptop", "--member", "bob")["secret"]
    bob = cloud.as_user(bob_key)
    bob.ok("launch", "--name", "one", "--wait", "--project", "speech")
    assert "instances" in bob.fails("launch", "--name", "two", "--project", "speech").err
    assert told(bob, "quota", "show", "--project", "speech")["instances"] == 1
    bob.fails("member", "add", "eve", "--role", "owner")
    ada.ok("member", "role", "bob", "viewer", "--in", "speech")
    bob.fails("delete", "one", "--yes", "--project", "speech")
    key_id = next(each["id"] for each in told(ada, "key", "list") if each["name"] == "laptop")
    ada.ok("key", "revoke", key_id, "--yes")
    assert "key" in bob.fails("ps", "--project", "speech").err
    assert {"member.make", "key.make"} <= {each["action"] for each in told(ada, "audit")}
    ada.ok("delete", "one", "--yes", "--project", "speech")
    ada.ok("project", "delete", "speech", "--yes")
    cloud.ok("delete", "secret", "--yes")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["launch", "--name", "a/b"], 2, "`a/b` is not a valid name"),
        (["launch", "--gpu", "V1000"], 2, "V1000"),
        (["launch", "--image", "nope"], 2, "nope"),
        (["launch", "--shape", "nope"], 2, "nope"),
        (["launch", "--vcpus", "1024", "--ram", "60TB"], 2, "larger than any host"),
        (["launch", "--access", "jupyter", "--", "true"], 2, "cannot run a command"),
        (["account", "add", "nosuch"], 2, "Unknown provider of accounts `nosuch`"),
        (["show", "nobody"], 1, "nobody"),
        (["ssh", "nobody"], 1, "nobody"),
        (["cp", "a", "b"], 2, "None of the paths is in an instance"),
        (["cp", "a:x", "b:y"], 2, "All instance paths must be in the same instance"),
        (["resize", "nobody"], 2, "No change was given"),
        (["delete", "nobody", "--yes"], 1, "nobody"),
        (["image", "bild"], 2, "`bild`"),
        (["quota", "set", "--gpus", "V1000=3"], 2, "V1000"),
        (["launch", "--project", "nowhere"], 1, "There is no project `nowhere`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_are_one_sentence_without_side_effects(
    cloud: Cloud, words: list[str], code: int, sentence: str
) -> None:
    before = names(cloud)
    done = cloud.fails(*words)
    assert done.code == code, done.err
    assert sentence in done.err
    assert names(cloud) == before


def test_explain_does_not_promise_room_for_what_no_host_can_hold(cloud: Cloud) -> None:
    told_why = cloud.ok("launch", "--vcpus", "1024", "--ram", "60TB", "--explain").out
    assert told_why.startswith("Does not fit: ")


def test_ssh_gets_the_host_key_and_never_prompts(cloud: Cloud, tmp_path: Path) -> None:
    """The simulated engine has no SSH, and the error says so."""
    cloud.ok("launch", "--name", "sim", "--wait")
    assert "SIMULATED" in cloud.fails("ssh", "sim").err
    assert "SIMULATED" in cloud.fails("cp", "x", "sim:").err
    assert "SIMULATED" in cloud.ok("cp", "sim:/etc/hostname", tmp_path / "name").err
    assert (tmp_path / "name").read_text() == "sim\n"
    cloud.ok("delete", "sim", "--yes")


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_tables_fit_the_terminal(cloud: Cloud, columns: int) -> None:
    for words in (
        ["ps"],
        ["host", "list"],
        ["shapes"],
        ["image", "list"],
        ["events"],
        ["audit"],
        ["key", "list"],
    ):
        done = cloud.ok(*words, columns=columns)
        assert max((len(line) for line in done.out.splitlines()), default=0) <= max(columns, 50), done.out


def test_up_is_idempotent(cloud: Cloud) -> None:
    pid = (cloud.home / "cloud" / "server.pid").read_text()
    assert "is already running" in cloud.ok("up").out
    assert (cloud.home / "cloud" / "server.pid").read_text() == pid
    for name in ("connection.json", "cloud/operator.key"):
        assert stat.S_IMODE((cloud.home / name).stat().st_mode) == 0o600
    kept = json.loads((cloud.home / "connection.json").read_text())
    assert kept["key"] == (cloud.home / "cloud" / "operator.key").read_text().strip()


def test_followed_events_are_shown_once(cloud: Cloud) -> None:
    cloud.ok("launch", "--name", "before", "--wait")
    with cloud.start("events", "--follow", "--json", "--limit", "2") as following:
        try:
            assert following.stdout is not None
            first = [json.loads(following.stdout.readline()) for _ in range(2)]
            cloud.ok("launch", "--name", "during", "--wait", "--no-wait")
            seen = first
            while (seen[-1]["details"].get("name"), seen[-1]["details"].get("to")) != ("during", "running"):
                seen.append(json.loads(following.stdout.readline()))
            following.send_signal(signal.SIGINT)
            following.communicate(timeout=30)
        finally:
            following.kill()
    assert following.returncode == 0
    assert len({each["id"] for each in seen}) == len(seen)
    assert {each["details"]["name"] for each in seen[2:]} == {"during"}
    cloud.ok("delete", "before", "during", "--yes")


def test_only_the_newest_events_are_read(cloud: Cloud) -> None:
    cloud.ok("launch", "--name", "eventful", "--wait")
    cloud.ok("restart", "eventful")
    every = told(cloud, "events", "--instance", "eventful", "--limit", "1000")
    assert len(every) > 3
    assert [each["at"] for each in every] == sorted(each["at"] for each in every)
    assert told(cloud, "events", "--instance", "eventful", "--limit", "3") == every[-3:]
    assert told(cloud, "events", "--limit", "2") == told(cloud, "events", "--since", "1h")[-2:]
    assert told(cloud, "events", "--instance", "eventful", "--since", every[-2]["at"]) == every[-2:]
    assert told(cloud, "events", "--since", "2100-01-01") == []
    assert "is not a time" in cloud.fails("events", "--since", "yesterday").err
    cloud.ok("delete", "eventful", "--yes")


def test_launch_works_without_an_ssh_client(cloud: Cloud, tmp_path: Path) -> None:
    bare = Cloud(cloud.home, cloud.port)
    bare.more = cloud.more | {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    (cloud.home / "ssh" / "id_ed25519").unlink(missing_ok=True)
    done = bare.ok("launch", "--name", "keyless", "--wait")
    assert "without an SSH key" in done.err
    assert bare.ok("exec", "keyless", "--", "hostname").out == "keyless\n"
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPQzL2Vhcm5lc3Q me"
    assert "without an SSH key" not in bare.ok("launch", "--name", "keyed", "--key", key, "--wait").err
    bare.ok("delete", "keyless", "keyed", "--yes")
