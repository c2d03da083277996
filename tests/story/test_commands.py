"""A tenant runs jobs from the command line: exit codes, `--rm`, time limits, files, labels, filters."""

from pathlib import Path

import pytest
from tests.story.cloud import Cloud, told


def names(cloud: Cloud, *words: str) -> list[str]:
    return sorted(each["name"] for each in told(cloud, "ps", *words))


def test_launch_exits_with_the_exit_code_of_the_command(cloud: Cloud) -> None:
    bad = cloud.run("launch", "--name", "bad", "--wait", "--", "cat", "/no/such/file")
    assert (bad.code, "No such file" in bad.out) == (1, True)
    seen = cloud.run("launch", "--name", "seen", "--wait", "--json", "--", "false")
    assert (seen.code, seen.json["exit_code"]) == (1, 1)
    many = cloud.run("launch", "--name", "many", "--instances", "2", "--wait", "--", "false")
    assert many.code == 1
    assert "stopped (exit 1)" in many.out
    assert cloud.run("launch", "--name", "gone", "--wait", "--", "no-such-program").code == 127
    cloud.ok("delete", "bad", "seen", "many-1", "many-2", "gone", "--yes")


def test_a_finished_command_runs_again(cloud: Cloud) -> None:
    cloud.ok("launch", "--name", "job", "--wait", "--", "echo", "hello")
    before = told(cloud, "events", "--instance", "job", "--limit", "1000")
    cloud.ok("start", "job")
    cloud.ok("logs", "job", "--follow")
    while told(cloud, "show", "job")["state"] != "stopped":
        continue
    assert cloud.ok("logs", "job").out == "hello\n", "the log of this run alone"
    assert told(cloud, "show", "job")["exit_code"] == 0
    assert len(told(cloud, "events", "--instance", "job", "--limit", "1000")) > len(before)
    cloud.ok("delete", "job", "--yes")


def test_rm_deletes_and_keeps_the_log(cloud: Cloud) -> None:
    done = cloud.run("launch", "--name", "once", "--rm", "--wait", "--", "cat", "/nothing")
    assert done.code == 1
    assert "No such file" in done.out
    assert "once" not in names(cloud)
    assert "No such file" in cloud.ok("logs", "once").out
    assert (told(cloud, "show", "once")["state"], told(cloud, "show", "once")["exit_code"]) == ("gone", 1)
    assert "--rm" in cloud.fails("launch", "--name", "forever", "--rm").err


def test_time_limit_is_shown_and_enforced(cloud: Cloud) -> None:
    cloud.ok("launch", "--name", "short", "--time-limit", "2s", "--wait")
    cloud.ok("launch", "--name", "long", "--time-limit", "1h30m", "--rm", "--wait")
    assert "1h30m, deletes it" in cloud.ok("show", "long").out
    assert "deleted; its log" in cloud.ok("show", "long").out
    cut = cloud.run("launch", "--name", "cut", "--time-limit", "2s", "--wait", "--", "sleep", "1000")
    assert cut.code == 124
    assert "reached its time limit" in cut.err
    while told(cloud, "show", "short")["state"] != "stopped":
        continue
    assert "2s, reached" in cloud.ok("show", "short").out
    kinds = {each["kind"] for each in told(cloud, "events", "--instance", "short")}
    assert {"instance.ends_soon", "instance.time_limit"} <= kinds
    cloud.ok("delete", "short", "long", "cut", "--yes")


def test_wait_includes_user_data_and_its_exit_code(cloud: Cloud, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho hello\n")
    cloud.ok("launch", "--name", "good", "--user-data", script, "--wait")
    assert told(cloud, "show", "good")["user_data"] == {"state": "done", "exit_code": 0}
    script.write_text("#!/bin/sh\necho broken\nexit 5\n")
    bad = cloud.fails("launch", "--name", "bad", "--user-data", script, "--wait")
    assert bad.code == 1
    assert "exit code 5" in bad.err
    assert "failed, exit code 5" in cloud.ok("show", "bad").out
    assert "(user-data: exit 5)" in cloud.ok("ps").out
    log = cloud.ok("logs", "bad", "--user-data")
    assert (log.out, "user-data ended with exit code 5" in log.err) == ("broken\n", True)
    script.write_text("#cloud-config\n")
    refused = cloud.fails("launch", "--name", "worse", "--user-data", script)
    assert (refused.code, "must start with `#!`" in refused.err) == (2, True)
    cloud.ok("delete", "good", "bad", "--yes")


def test_files_of_a_finished_command_can_be_copied(cloud: Cloud, tmp_path: Path) -> None:
    cloud.ok("launch", "--name", "made", "--wait", "--", "tee", "/root/out/a", "/root/out/b", "/root/c")
    cloud.ok("cp", "made:/root/c", tmp_path / "here")
    assert (tmp_path / "here").read_bytes() == b""
    assert "is a folder" in cloud.fails("cp", "made:/root/out", tmp_path).err
    cloud.ok("cp", "-r", "made:out", tmp_path)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "b"]
    assert "no `/root/nothing`" in cloud.fails("cp", "made:nothing", tmp_path).err
    cloud.ok("delete", "made", "--yes")


def test_labels_change_and_lists_are_filtered(cloud: Cloud) -> None:
    cloud.ok("launch", "--name", "web", "--instances", "3", "--label", "team=red", "--wait")
    assert cloud.ok("label", "web-1", "team=blue", "run=7").out == "web-1: run=7 team=blue\n"
    assert cloud.ok("label", "web-1", "run-").out == "web-1: team=blue\n"
    assert cloud.ok("label", "web-1").out == "web-1: team=blue\n"
    cloud.ok("stop", "web-2")
    assert names(cloud, "--label", "team=red") == ["web-2", "web-3"]
    assert names(cloud, "--label", "team=red", "--state", "running") == ["web-3"]
    assert names(cloud, "--name", "web-*", "--state", "stopped", "--state", "running") == [
        "web-1",
        "web-2",
        "web-3",
    ]
    assert names(cloud, "--name", "?eb-1") == ["web-1"]
    assert "No instance matches" in cloud.ok("ps", "--label", "team=green").err
    assert cloud.fails("ps", "--state", "asleep").code == 2
    assert cloud.fails("ps", "--name", "Web").code == 2
    assert "is not a label change" in cloud.fails("label", "web-1", "team").err
    cloud.ok("delete", "web-1", "web-2", "web-3", "--yes")
    assert "web-1" in names(cloud, "--state", "gone")


@pytest.mark.parametrize("columns", [60, 80])
def test_output_fits_a_narrow_terminal(cloud: Cloud, columns: int) -> None:
    cloud.ok("launch", "--name", "narrow", "--ram", "256MB", "--time-limit", "1d", "--wait")
    out = cloud.ok("show", "narrow", columns=columns).out
    assert "memory" in out
    assert "256 MB" in out
    assert max(len(line) for line in out.splitlines()) <= columns, out
    listed = cloud.ok("ps", columns=columns).out
    assert max(len(line) for line in listed.splitlines()) <= columns, listed
    assert "running SIMULATED" in listed
    cloud.ok("delete", "narrow", "--yes")
