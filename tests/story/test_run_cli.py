"""`tera run` as users type it, on simulated hosts."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.story.cloud import Cloud
from tests.story.tera import checked

SECRET = "hush-hush-text"


class Runner(Cloud):
    """A user in the folder of a project."""

    folder: Path

    def run_in(self, *words: str, stdin: bytes = b"", **more: str):  # type: ignore[no-untyped-def]  # a Done
        done = subprocess.run(
            self.command("run", *words),
            env=self.environment(100) | more,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return checked(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    cloud = Runner(tmp_path_factory.mktemp("runs") / "home")
    cloud.folder = cloud.home.parent / "project"
    (cloud.folder / "data").mkdir(parents=True)
    (cloud.folder / "train.py").write_text("print('hello')\n")
    (cloud.folder / "data" / "big.bin").write_bytes(bytes(2000))
    (cloud.folder / ".teraignore").write_text("data/\n")
    try:
        cloud.ok("up")
        yield cloud
    finally:
        cloud.run("purge", "--yes")


def test_output_exit_code_and_results_come_back(cloud: Runner) -> None:
    done = cloud.run_in("--yes", "--name", "good", "--", "train", "4", "0.2", "2")
    assert (done.code, done.out) == (0, "step 1\nstep 2\nstep 3\nstep 4\n")
    assert "`good` is done SIMULATED" in done.err
    cloud.ok("run", "cp", "good", cloud.home.parent / "fetched")
    assert len((cloud.home.parent / "fetched" / "outputs" / "result").read_text()) == 64
    cloud.ok("run", "cp", "good", cloud.home.parent / "saved", "--checkpoint", "step-4")
    assert (cloud.home.parent / "saved" / "step-4").exists()
    failed = cloud.run_in("--yes", "--json", "--", "false")
    assert (failed.code, failed.json["exit_code"]) == (1, 1)
    assert cloud.run_in("--yes", "--name", "odd", "--", "no-such-program").code == 127
    assert "writes what should be kept to `$TERA_OUTPUTS`" in cloud.fails("run", "cp", "odd").hint
    assert "The last node is 0" in cloud.fails("run", "logs", "odd", "--node", "1").hint
    assert cloud.ok("ps", "--json").json == [], "no instance is left"
    narrow = cloud.run("runs", columns=60)
    assert all(len(line) <= 60 for line in narrow.out.splitlines())


def test_killed_client_changes_nothing_and_logs_follow_again(cloud: Runner) -> None:
    client = cloud.start("run", "--yes", "--name", "long", "--", "train", "12", "0.3", "2")
    while not cloud.run("run", "logs", "long").out:
        time.sleep(0.1)
    os.kill(client.pid, signal.SIGKILL)
    client.communicate()
    done = cloud.ok("run", "logs", "-f", "long")
    assert done.out == "".join(f"step {each}\n" for each in range(1, 13))
    assert cloud.ok("run", "logs", "long", "--tail", "1").out == "step 12\n"


def test_attach_follows_from_now_on(cloud: Runner) -> None:
    cloud.ok("run", "--yes", "--detach", "--name", "again", "--", "train", "8", "0.3", "2")
    while not cloud.run("run", "logs", "again").out:
        time.sleep(0.1)
    done = cloud.ok("run", "attach", "again")
    assert "`again` is done" in done.err
    assert done.out.endswith("step 8\n")
    assert "step 1\n" not in done.out


def test_sweep_runs_every_combination(cloud: Runner) -> None:
    made = cloud.run_in(
        "--yes", "--name", "grid", "--json", "--sweep", "a=1,2", "--sweep", "b=x", "--", "echo", "{a}"
    )
    runs = json.loads(made.out)
    assert [each["command"] for each in runs] == [["echo", "1", "--b", "x"], ["echo", "2", "--b", "x"]]
    assert cloud.ok("run", "logs", "-f", "grid-2").out == "2 --b x\n"
    shown = cloud.ok("runs", "--sweep", "grid", "--json").json
    assert {each["name"] for each in shown} == {"grid-1", "grid-2"}
    words = ("--sweep", "a=1,2,3", "--sweep", "b=x", "--budget", "5", "--dry-run")
    assert json.loads(cloud.run_in(*words, "--json", "--", "true").out)["runs"] == 3
    plan = cloud.run_in(*words, "--", "true").out
    assert "3 runs; time and cost are those of one" in plan
    assert "5.00 for all of them together" in plan
    refused = cloud.run_in("--yes", "--sweep", "nonsense", "--", "true")
    assert refused.code == 2


def test_cancel_and_retry_continue_from_the_checkpoint(cloud: Runner) -> None:
    cloud.ok("run", "--yes", "--detach", "--name", "stopped", "--", "train", "30", "0.2", "100")
    while not cloud.run("run", "logs", "stopped").out:
        time.sleep(0.1)
    cloud.ok("run", "cancel", "stopped")
    assert cloud.run("run", "logs", "-f", "stopped").code != 0
    shown = cloud.ok("run", "show", "stopped", "--json").json
    assert (shown["state"], len(shown["checkpoints"])) == ("cancelled", 1)
    done = cloud.ok("run", "retry", "stopped")
    assert "`stopped` is done" in done.err
    assert "run_" not in done.err, "it is called by its name"
    assert done.out.endswith("step 30\n")
    assert "step 1\n" not in done.out
    assert "done" in cloud.fails("run", "retry", "stopped").err


def test_secret_is_in_no_output(cloud: Runner) -> None:
    done = cloud.run_in("--yes", "--name", "secretive", "--secret", "TOKEN", "--", "true", TOKEN=SECRET)
    assert done.code == 0
    piped = cloud.run_in("--yes", "--secret", "OTHER", "--", "true", stdin=f"{SECRET}\n".encode())
    assert piped.code == 0
    plan = cloud.run_in("--dry-run", "--json", "--secret", "TOKEN", "--", "true", TOKEN=SECRET)
    assert json.loads(plan.out)["secrets"] == ["TOKEN"]
    shown = cloud.ok("run", "show", "secretive", "--json")
    assert shown.json["secrets"] == ["TOKEN"]
    told = [done, piped, plan, shown, cloud.ok("events", "--json"), cloud.ok("audit", "--json")]
    assert all(SECRET not in each.out + each.err for each in told)
    assert SECRET.encode() not in (cloud.home / "cloud" / "cloud.db").read_bytes()
    refused = cloud.run_in("--yes", "--secret", f"TOKEN={SECRET}", "--", "true")
    assert refused.code == 2
    assert SECRET not in refused.err


def test_plan_is_shown_and_nothing_starts_without_yes(cloud: Runner) -> None:
    before = len(cloud.ok("runs", "--json").json)
    plan = json.loads(cloud.run_in("train.py", "--dry-run", "--json", "--hours", "2", "--deadline", "1h").out)
    assert (plan["files"], plan["command"]) == (2, ["python3", "train.py"])
    assert plan["estimate"]["hours"] == [2.0, 2.0, 2.0]
    assert plan["meets_deadline"] is False
    command = cloud.run_in("--dry-run", "--", "python3", "train.py")
    assert "note: `train.py` is not uploaded" in command.err
    assert "not uploaded" not in cloud.run_in("--dry-run", "--workdir", ".", "--", "python3", "train.py").err
    asked = cloud.run_in("train.py")
    assert (asked.code, "Add `--yes`" in asked.hint) == (2, True)
    assert len(cloud.ok("runs", "--json").json) == before


def test_file_holds_the_same_words(cloud: Runner) -> None:
    file = cloud.folder / "tera.yaml"
    assert cloud.run_in("init").code == 0
    assert cloud.run_in("init").code == 1, "an existing file is kept"
    plan = json.loads(cloud.run_in("--dry-run", "--json").out)
    assert plan["command"] == ["python3", "train.py"]
    file.write_text("command: [train, 2, 0.1]\nenv: {A: 1}\nname: filed\nkeep: 2\n")
    plan = json.loads(cloud.run_in("--dry-run", "--json", "--keep", "4").out)
    assert (plan["command"], plan["environment"], plan["name"], plan["keep"]) == (
        ["train", "2", "0.1"], {"A": "1"}, "filed", 4,
    )  # fmt: skip
    for text, word in (
        ("gpuu: A100\n", "Did you mean `gpu`"),
        ("- a\n", "gpu: A100"),
        ("keep: many\n", "tera.yaml"),
    ):
        file.write_text(text)
        done = cloud.run_in("--dry-run", "--", "true")
        assert done.code == 2, done
        assert word in done.hint
    file.unlink()


def test_wrong_input_gets_one_sentence(cloud: Runner) -> None:
    for words, sentence in (
        (("train.py", "--lr", "0.1"), "Unknown option `--lr`"),
        (("--env", "TERA_X=1", "--", "true"), "is set by Teraflock"),
        (("--env", "A B=1", "--", "true"), "`A B` is not a valid name for an environment variable"),
        (("--secret", "A B", "--", "true"), "`A B` is not a valid name for an environment variable"),
        (("--epochs", "3", "--", "true"), "`--epochs` needs `--samples`"),
        (("--outputs", "../..", "--", "true"), "not an absolute path"),
        (("--image", "absent", "--", "true"), "There is no image `absent`"),
    ):
        done = cloud.run_in("--yes", *words)
        assert done.code in (1, 2)
        assert sentence in done.err
        assert done.hint
