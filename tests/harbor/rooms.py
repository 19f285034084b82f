"""An environment for the real Harbor without a container engine: folders of its own under bubblewrap.

It runs in Harbor's own virtual environment (see test_real_harbor.py) and imports nothing of this package. It builds no
image: it copies the build context where the Dockerfile would, and the host's programs stand for the image's. Python
with the scorer's packages is that of OEB_ROOM_PYTHON, a virtual environment.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.models.task.config import NetworkMode

PLACES = ("app", "logs", "tests", "solution", "tmp", "home")


class Rooms(BaseEnvironment):
    """See the module's text. No network is real: only loopback exists; a list of hosts is refused."""

    @staticmethod
    def type() -> str:
        return "rooms"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True, dynamic_network_policy=True)

    def _validate_definition(self) -> None:
        if not (self.environment_dir / "Dockerfile").is_file():
            raise FileNotFoundError(self.environment_dir / "Dockerfile")

    async def _apply_network_policy(self, network_policy: object) -> None:
        """Nothing to switch: every command is given the policy of its moment."""

    async def start(self, force_build: bool) -> None:
        self.room = Path(tempfile.mkdtemp(prefix="oeb-harbor-"))
        for place in (*PLACES, "logs/verifier", "logs/agent", "logs/artifacts"):
            (self.room / place).mkdir(exist_ok=True)
        for line in (self.environment_dir / "Dockerfile").read_text().splitlines():
            if line.startswith("COPY "):
                *names, target = line.split()[1:]
                for name in names:
                    source = self.environment_dir / name
                    if source.is_dir():
                        shutil.copytree(source, self._host(target), dirs_exist_ok=True)
                    else:
                        shutil.copy(source, self._host(target))

    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self.room, ignore_errors=True)

    def _host(self, path: str | Path) -> Path:
        """Where a path inside lies on the host."""
        place = Path(str(path)).relative_to("/")
        assert place.parts[0] in PLACES and ".." not in place.parts, f"{path} is no place of a room"
        return self.room / place

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self._host(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self._host(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._host(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self._host(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._host(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        python = os.environ["OEB_ROOM_PYTHON"]
        base = os.path.dirname(os.path.dirname(os.path.realpath(f"{python}/bin/python")))
        words = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv"]
        words += [] if self._network_policy.network_mode == NetworkMode.NO_NETWORK else ["--share-net"]
        for place in PLACES:
            words += ["--bind", str(self.room / place), f"/{place}"]
        for place in dict.fromkeys(("/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", base, python)):
            words += ["--ro-bind-try", place, place]
        for name in ("bin", "sbin", "lib", "lib64"):
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        inside = {"PATH": f"{python}/bin:/usr/bin:/bin", "HOME": "/home", "TMPDIR": "/tmp", **(env or {})}
        for name, value in inside.items():
            words += ["--setenv", name, value]
        words += ["--proc", "/proc", "--dev", "/dev", "--chdir", cwd or self.task_env_config.workdir or "/"]
        process = await asyncio.create_subprocess_exec(
            *words, "sh", "-c", command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(timeout_sec):
                out, err = await process.communicate()
        except TimeoutError:
            process.kill()
            raise
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode or 0)
