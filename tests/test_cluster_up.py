"""`ray up` for real: the repository's cluster.yaml, for machines of one's own as its comments say, on two machines.

Two machines here are two ssh servers on loopback, each with its own home, processes and place for Ray's files, in Linux
namespaces: what looks for Ray processes by name sees those of its machine alone. `make test-up` runs it as root.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers import contents, run_inline

ROOT = Path(__file__).parent.parent
NAME = f"oeb-{os.getpid()}"
HEAD, WORKER = "127.0.0.2", "127.0.0.3"
PORT, DASHBOARD = 26379, 28265  # out of the way of what else may run here
NEEDED = ("unshare", "rsync", "ssh-keygen", "/usr/sbin/sshd")
pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("OEB_UP"), reason="starts ssh servers; make test-up"),
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and ssh servers as root"),
    pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason="needs openssh-server and rsync"),
]
COUNT = "import ray; ray.init('auto', log_to_driver=False); print('alive', sum(n['Alive'] for n in ray.nodes()))"
SSHD = """\
ListenAddress {ip}
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
PidFile none
Subsystem sftp internal-sftp
"""


def machine(folder: Path, ip: str) -> subprocess.Popen[bytes]:
    """An ssh server that sees its own processes only, whose home is a folder of its own."""
    home, rays = folder / f"home-{ip}", folder / f"ray-{ip}"
    for made in (home, rays, Path("/tmp/ray"), Path("/run/sshd")):
        made.mkdir(parents=True, exist_ok=True)
    users = folder / f"passwd-{ip}"
    users.write_text(
        re.sub(r"^root:.*$", f"root:x:0:0:root:{home}:/bin/bash", Path("/etc/passwd").read_text(), flags=re.M)
    )
    config = folder / f"sshd-{ip}"
    config.write_text(SSHD.format(ip=ip, folder=folder))
    begin = f"mount --bind {users} /etc/passwd && mount --bind {rays} /tmp/ray && exec /usr/sbin/sshd -D -e -f {config}"
    words = ["unshare", "--pid", "--fork", "--mount-proc", "--mount", "--kill-child", "sh", "-c", begin]
    with (folder / f"log-{ip}").open("wb") as log:
        return subprocess.Popen(words, stdout=log, stderr=log)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Path]:
    """The folder with the key to both."""
    for name in ("key", "host_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    opened = [machine(tmp_path, ip) for ip in (HEAD, WORKER)]
    yield tmp_path
    for one in opened:
        one.kill()  # and with it all in its namespace
        one.wait()
    for left in Path("/tmp/ray").glob(f"cluster-{NAME}.*"):
        left.unlink()


def own_machines(folder: Path) -> dict[str, Any]:
    """cluster.yaml with the lines changed that it marks OWN, and what two machines at one place cannot share."""
    text = (ROOT / "cluster.yaml").read_text()
    config: dict[str, Any] = yaml.safe_load(text)
    own = yaml.safe_load(re.search(r"# OWN: (\{.*\});", text)[1])  # type: ignore[index]
    del config["available_node_types"], config["head_node_type"]
    config |= {
        "cluster_name": NAME, "provider": own | {"head_ip": HEAD, "worker_ips": [WORKER]},
        "min_workers": 1, "max_workers": 1,
        "auth": {"ssh_user": "root", "ssh_private_key": str(folder / "key")},
    }  # fmt: skip
    # No index to install from: both machines take the environment of this checkout.
    config["setup_commands"] = [config["setup_commands"][0], f"ln -sfn {Path(sys.executable).parent.parent} ~/oeb"]
    for number, (phase, ip) in enumerate((("head", HEAD), ("worker", WORKER)), 1):
        words = f"--node-ip-address={ip} --num-cpus=1 --object-store-memory=100000000"
        words += f" --dashboard-agent-listen-port={DASHBOARD + number}"
        config[f"{phase}_start_ray_commands"] = [
            line.replace("6379", str(PORT)).replace("--metrics-export-port=8080", words)
            .replace("--dashboard-host=127.0.0.1", f"--dashboard-host=127.0.0.1 --dashboard-port={DASHBOARD}")
            .replace("ray start --head", "RAY_enable_autoscaler_v2=0 ray start --head")
            for line in config[f"{phase}_start_ray_commands"]
        ]  # fmt: skip
    return config


class Client:
    """Whoever runs the launcher, in a home of its own."""

    def __init__(self, folder: Path) -> None:
        home = folder / "client"
        (home / ".ray").mkdir(parents=True)
        (home / ".ray" / "auth_token").write_text("a" * 64)
        (home / ".oeb.env").write_text("DATALAB_API_KEY=none\n")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.env = {
            **os.environ,
            "HOME": str(home),
            "PATH": path,
            "RAY_AUTH_MODE": "token",
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    def run(self, *words: str, seconds: float = 300) -> str:
        began = time.monotonic()
        done = subprocess.run(
            words, cwd=ROOT, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
        print(f"\n{time.monotonic() - began:5.1f} s  {' '.join(words[:3])}", flush=True)
        assert done.returncode == 0, done.stdout
        return done.stdout


def test_two_machines_of_ones_own_come_up_do_a_job_and_go(machines: Path, tmp_path: Path) -> None:
    client, file = Client(tmp_path), str(tmp_path / "cluster.yaml")
    Path(file).write_text(yaml.safe_dump(own_machines(machines)))
    client.run("ray", "up", "--yes", "--no-config-cache", file)
    try:
        until = time.monotonic() + 120
        while "alive 2" not in client.run("ray", "exec", file, f'RAY_AUTH_MODE=token ~/oeb/bin/python -c "{COUNT}"'):
            assert time.monotonic() < until, "the worker does not come"
            time.sleep(2)
        out, local = str(tmp_path / "out"), str(tmp_path / "local")
        client.env["RAY_ADDRESS"] = f"http://127.0.0.1:{DASHBOARD}"
        events = tmp_path / "events.jsonl"
        client.run(
            "ray", "job", "submit", "--", "python", "-m", "jobs.benchmark", "corpus=sample", "provider=[pdftext]",
            f"storage.root={out}", f"events={events}", "cluster=existing", "cluster.address=auto",
        )  # fmt: skip
        run_inline(["corpus=sample", "provider=[pdftext]", f"storage.root={local}", "cluster=inline"])
        assert contents(out) == contents(local) and '"processors":2' in events.read_text().replace(" ", "")
    finally:
        del client.env["RAY_ADDRESS"]
        client.run("ray", "down", "--yes", file)
