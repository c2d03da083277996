"""`tera estimate` and `tera trace` as a user meets them: shapes of the answer, and one sentence for a mistake."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from teraflock.cli.estimate.many import ROWS_PER_WORKER_MIN
from teraflock.estimate.step import HOSTS, SHARED

COLUMNS = "model,task,batch,seq,precision,optimizer,gradient_checkpointing,lora_rank,gpu"


def tera(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "teraflock", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_json_has_the_promised_shape() -> None:
    done = tera("estimate", "vgg16", "--batch", "64", "--gpu", "H200", "--memory-limit", "11GiB", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {"workload", "memory", "gpus", "cpu", "assumptions"}
    assert {"live_peak_bytes", "reserved_peak_bytes", "device_peak_bytes", "breakdown"} == set(
        found["memory"]
    )
    assert found["gpus"][0]["gpu"] == "11GiB"
    keys = {
        "gpu",
        "fits",
        "oom_probability",
        "largest_batch",
        "step_seconds",
        "samples_per_second",
        "evidence",
    }
    assert all(keys <= set(row) for row in found["gpus"])
    assert set(found["gpus"][-1]["step_seconds"]) == {"p10", "p50", "p90"}


def test_a_table_of_all_cards() -> None:
    done = tera("estimate", "resnet18", "--batch", "64", "--steps", "1000")
    assert done.returncode == 0, done.stderr
    assert "H200-SXM" in done.stdout
    assert "Peak:" in done.stderr


def test_many_workloads_come_back_in_order(tmp_path: Path) -> None:
    source = tmp_path / "jobs.csv"
    source.write_text(f"{COLUMNS}\nresnet18,train,8,,fp32,sgd,0,,H200\ndistilbert,infer,4,64,bf16,,0,,H200\n")
    done = tera("estimate", "--from", str(source))
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["workload"]["model"] for each in found] == ["resnet18", "distilbert"]
    assert all(each["gpus"] for each in found)


def test_a_long_table_answers_as_single_questions_do(tmp_path: Path) -> None:
    """Enough rows for several processes, which inherit what the first one has read."""
    batches = range(1, 2 * ROWS_PER_WORKER_MIN + 1)
    source = tmp_path / "jobs.csv"
    source.write_text("model,batch\n" + "".join(f"resnet18,{each}\n" for each in batches))
    many = [json.loads(line) for line in tera("estimate", "--from", str(source)).stdout.splitlines()]
    assert [each["workload"]["batch"] for each in many] == list(batches)
    for each in (1, 2 * ROWS_PER_WORKER_MIN):
        single = tera("estimate", "resnet18", "--batch", str(each), "--json")
        assert many[each - 1] == json.loads(single.stdout)


def test_a_plot_is_drawn(tmp_path: Path) -> None:
    drawn = tmp_path / "out.svg"
    done = tera("estimate", "resnet18", "--batch", "8", "--gpu", "T4", "--plot", str(drawn))
    assert done.returncode == 0, done.stderr
    assert drawn.read_text().startswith("<svg")


def test_a_plot_shows_every_card_the_fastest_first(tmp_path: Path) -> None:
    drawn = tmp_path / "out.svg"
    done = tera("estimate", "resnet18", "--batch", "64", "--json", "--plot", str(drawn))
    assert done.returncode == 0, done.stderr
    timed = [row for row in json.loads(done.stdout)["gpus"] if row["step_seconds"]]
    text = drawn.read_text()
    places = [
        text.index(f">{row['gpu']}{'' if row['fits'] else ' (too small)'}<")
        for row in sorted(timed, key=lambda each: each["step_seconds"]["p50"])
    ]
    assert places == sorted(places)


def test_hours_asked_for_are_seen_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = tera("estimate", "resnet18", "--batch", "64", "--steps", "1000", "--gpu", "H200", "--gpu", "T4")
    assert "hours" in done.stdout.splitlines()[0]


def test_a_wrong_row_is_told_before_any_is_answered(tmp_path: Path) -> None:
    source = tmp_path / "jobs.csv"
    source.write_text("model,batch,seq\nresnet18,8,\nbert-base,4,600\n")
    done = tera("estimate", "--from", str(source))
    assert done.returncode == 2
    assert done.stdout == ""
    assert "line 3: bert-base has 512 positions" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["resnet51", "--batch", "1"], "resnet50"),
        (["resnet50"], "--batch"),
        (["resnet50", "--batch", "0"], "at least 1"),
        (["bert-base", "--batch", "1", "--seq", "600"], "512 positions"),
        (["no.trace"], "cannot be read"),
        (["resnet50", "--batch", "1", "--precision", "fp7"], "precision"),
        (["resnet50", "--batch", "1", "--gpu", "Z9000"], "Z9000"),
        (["resnet50", "--batch", "1", "--memory-limit", "much"], "memory"),
        (["resnet50", "--batch", "1", "--steps", "-5"], "--steps"),
        (["resnet50", "--batch", "1", "--plot", "nowhere/out.svg"], "cannot be written"),
        (["gpt2", "--batch", "1", "--kv-cache"], "inference"),
        (["gpt2", "--batch", "1", "--accumulate", "0"], "between 1 and 65,536, not 0"),
        (["gpt2", "--batch", "1", "--tensor-parallel", "0"], "from 1 to 8, not 0"),
        (["gpt2", "--batch", "1", "--load-in", "3bit"], "Known: `4bit`, `8bit`"),
        (["train.py"], "tera trace train.py"),
        (["job.trace", "--precision", "bf16"], "--precision"),
    ],
)
def test_a_mistake_gets_one_sentence_and_exit_code_2(words: list[str], says: str, tmp_path: Path) -> None:
    done = tera("estimate", *words, folder=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_bf16_on_pascal_alone_is_refused() -> None:
    done = tera("estimate", "resnet50", "--batch", "1", "--precision", "bf16", "--gpu", "P100")
    assert done.returncode == 2
    assert "bf16" in done.stderr


def test_a_damaged_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.trace").write_bytes(b"TERATRC\n\x01\x00")
    done = tera("estimate", "job.trace", folder=tmp_path)
    assert done.returncode == 2
    assert "truncated" in done.stderr


def test_what_fits_nowhere_is_told_what_would_help() -> None:
    done = tera("estimate", "llama-8b", "--batch", "1", "--seq", "2048", "--gpu", "L4")
    assert done.returncode == 0, done.stderr
    assert "LoRA" in done.stderr
    assert "checkpointing" in done.stderr


def test_a_batch_too_large_for_one_card_is_spread_over_several() -> None:
    done = tera("estimate", "vgg16", "--batch", "512", "--gpu", "L4")
    assert done.returncode == 0, done.stderr
    assert "2 GPUs with a batch of 256 on each: " in done.stderr


def test_tracing_needs_a_script_that_is_there(tmp_path: Path) -> None:
    done = tera("trace", "nowhere.py", "-o", "job.trace", folder=tmp_path)
    assert done.returncode == 2
    assert "nowhere.py" in done.stderr


def test_whose_cores_issue_the_steps_is_asked_and_told() -> None:
    words = ("estimate", "resnet50", "--batch", "4", "--gpu", "H200")
    for host in HOSTS:
        done = tera(*words, "--cpu", host)
        assert done.returncode == 0, done.stderr
        assert "waits for the host" in done.stderr
        assert ("--cpu own" in done.stderr) == (host == SHARED)
    done = tera(*words, "--cpu", "2.3", "--json")
    assert "host as you stated, 2.3 times the time of the measured one" in done.stdout
    for wrong in ("mine", "0", "-2", "nan", "inf", "1e9", ""):
        done = tera(*words, "--cpu", wrong)
        assert done.returncode == 2, wrong
        assert "must be `shared`, `own` or a number from 0.1 to 100" in done.stderr, done.stderr


def test_the_old_name_of_the_cpu_option_works_and_names_the_new_one() -> None:
    words = ("estimate", "resnet50", "--batch", "4", "--gpu", "H200", "--json")
    old, new = tera(*words, "--host", "own"), tera(*words, "--cpu", "own")
    assert old.returncode == 0, old.stderr
    assert old.stdout == new.stdout != tera(*words).stdout
    assert old.stderr == "`--host own` is deprecated; use `--cpu own`\n"
    assert "--host" not in tera("estimate", "--help").stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["gpt2", "--gpus", "6", "--tensor-parallel", "4"], "6 GPUs cannot be divided into groups of 4"),
        (["gpt2", "--gpu", "H200 1g.18gb", "--tensor-parallel", "2"], "is a MIG slice"),
        (["vgg16", "--tensor-parallel", "2"], "no transformer blocks"),
    ],
)
def test_tensor_parallelism_that_cannot_be_is_refused(words: list[str], why: str) -> None:
    done = tera("estimate", *words, "--batch", "2")
    assert (done.returncode, why in done.stderr) == (2, True)


def test_sharding_shows_what_each_gpu_needs_and_what_is_assumed() -> None:
    words = ["estimate", "gpt2", "--batch", "2", "--gpu", "L4", "--gpus", "4"]
    done = tera(*words, "--zero", "2", "--offload")
    assert done.returncode == 0, done.stderr
    assert "Minimum to fit on each GPU" in done.stderr
    for assumed in ("60% of PCIe bandwidth", "sharded jobs", "`--offload` is computed"):
        assert assumed in done.stderr
    told = json.loads(tera(*words, "--shard", "--json").stdout)
    assert told["gpus"][0]["evidence"].startswith("several GPUs are computed")
    assert len(told["assumptions"]) == 2
    assert "computed, not measured: it assumes" not in tera(*words[:-2]).stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--shard"], "Sharding needs at least two GPUs"),
        (["--zero", "4", "--gpus", "2"], "`--zero` must be from 1 to 3"),
        (["--zero", "1", "--shard", "--gpus", "2"], "conflicts with `--zero`"),
        (["--shard", "--gpus", "4", "--tensor-parallel", "4"], "two groups of GPUs"),
    ],
)
def test_sharding_that_cannot_be_is_refused(words: list[str], why: str) -> None:
    done = tera("estimate", "gpt2", "--batch", "2", *words)
    assert (done.returncode, why in done.stderr) == (2, True)


def test_a_global_batch_is_divided_among_groups() -> None:
    words = ["estimate", "gpt2", "--global-batch", "16", "--gpu", "H200", "--json"]
    done = tera(*words, "--gpus", "8", "--tensor-parallel", "2")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["workload"]["batch"] == 4


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ('model,batch\n"resnet18,8\n', [], "line 2: expected a number"),
        ("model,batch\nresnet18\n", [], "line 2: expected a number"),
        ("model,batch\n,8\n", [], "line 2: Unknown model"),
        ("model,batch\nresnet18,8\n", ["--batch", "4"], "`--batch` does not apply to `--from`"),
        ("model,batch\nresnet18,8\n", ["--optimizer", "none"], "Use a column `optimizer`"),
        ("model,batch\nresnet18,8\n", ["resnet50"], "not both"),
    ],
)
def test_a_file_of_workloads_that_cannot_be_used_is_refused(
    tmp_path: Path, text: str, words: list[str], said: str
) -> None:
    source = tmp_path / "jobs.csv"
    source.write_text(text)
    done = tera("estimate", "--from", str(source), "--gpu", "T4", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_a_file_from_a_spreadsheet_is_read_and_its_other_columns_named(tmp_path: Path) -> None:
    source = tmp_path / "jobs.csv"
    source.write_bytes("model,batch,colour\r\nresnet18,8,red\r\n".encode("utf-8-sig"))
    done = tera("estimate", "--from", str(source), "--gpu", "T4")
    assert json.loads(done.stdout)["workload"]["batch"] == 8
    assert "not used: colour" in done.stderr


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--power-limit", "300 W"], "H200-SXM at 300 W"),
        (["--power-limit", "0.3kw"], "H200-SXM at 300 W"),
        (["--clock", "1.41GHz"], "H200-SXM at 1410 MHz"),
    ],
)
def test_limits_may_have_their_unit(words: list[str], name: str) -> None:
    done = tera("estimate", "resnet18", "--batch", "8", "--gpu", "H200", "--json", *words)
    assert json.loads(done.stdout)["gpus"][0]["gpu"] == name


def test_a_limit_in_another_unit_is_refused() -> None:
    done = tera("estimate", "resnet18", "--batch", "8", "--gpu", "H200", "--power-limit", "300 V")
    assert done.returncode == 2
    assert "`300 V` is not a number, with or without kW or W" in done.stderr
