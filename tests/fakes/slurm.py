"""A real Slurm cluster with one node on this machine: munged, slurmctld and slurmd, in a PID namespace of their own.

The namespace ends with the process that started it, and with it all daemons and jobs, also if the test is killed.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sshd", "unshare")
SECONDS_MAX = 60.0
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
DAEMONS = """
mount -t tmpfs tmpfs /root  # jobs run as root: nothing of its profile
rm -rf /tmp/tera-job-ins_m7e81w00zd0ddeg*  # of a test that was killed
munged -F --force --socket=FOLDER/munge.socket --key-file=FOLDER/munge.key --log-file=FOLDER/munge.log \\
    --pid-file=FOLDER/munge.pid --seed-file=FOLDER/munge.seed &
while [ ! -S FOLDER/munge.socket ]; do sleep 0.1; done
slurmctld -D -f FOLDER/slurm.conf &
slurmd -D -f FOLDER/slurm.conf &
wait
"""
CONF = """ClusterName=test
SlurmctldHost=NODE(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=FOLDER/munge.socket
CredType=cred/munge
SlurmctldPort=PORT1
SlurmdPort=PORT2
StateSaveLocation=FOLDER/state
SlurmdSpoolDir=FOLDER/spool
SlurmctldPidFile=FOLDER/slurmctld.pid
SlurmdPidFile=FOLDER/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
MpiDefault=none
ReturnToService=2
KillWait=2
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
NodeName=NODE NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=debug Nodes=NODE Default=YES State=UP
"""


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = socket.gethostname().partition(".")[0]
        self.conf = folder / "slurm.conf"

    def slurm(self, *words: str) -> str:
        environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr


@contextlib.contextmanager
def slurm_cluster() -> Iterator[Cluster]:
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root and {', '.join(missing) or 'Slurm'}: scripts/slurm installs it")
    Path("/run/sshd").mkdir(exist_ok=True, mode=0o755)
    with tempfile.TemporaryDirectory(prefix="tera-slurm-") as name, contextlib.ExitStack() as stack:
        cluster = Cluster(Path(name))
        _written(cluster)
        daemons = DAEMONS.replace("FOLDER", name)
        words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", daemons]
        log = stack.enter_context((cluster.folder / "log").open("wb"))
        process = subprocess.Popen(words, env={**os.environ, "PATH": PATH}, stdout=log, stderr=log)
        try:
            _wait_for(cluster, process)
            yield cluster
        finally:
            process.kill()
            process.wait(20)


def _written(cluster: Cluster) -> None:
    folder = cluster.folder
    folder.chmod(0o755)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    text = CONF.replace("FOLDER", str(folder)).replace("NODE", cluster.node)
    cluster.conf.write_text(text.replace("PORT1", str(_port())).replace("PORT2", str(_port())))


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _wait_for(cluster: Cluster, process: subprocess.Popen[bytes]) -> None:
    over_at = time.monotonic() + SECONDS_MAX
    while time.monotonic() < over_at and process.poll() is None:
        if "idle" in cluster.slurm("sinfo", "--noheader", "--format=%T"):
            return
        time.sleep(0.3)
    pytest.fail(f"Slurm does not start: {(cluster.folder / 'log').read_text()[-2000:]}")
