"""How a job is reached by SSH, in the words that people and programs type."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from aiplatform import env
from workers.access.ssh import host_key
from workers.core.models import Job


@dataclass(frozen=True)
class Entry:
    """Address and login name of a job at the gateway."""

    host: str
    port: int
    login: str

    @property
    def command(self) -> str:
        """What is typed into a terminal."""
        return f"ssh -p {self.port} {self.login}@{self.host}"

    @property
    def config(self) -> str:
        """Lines for ~/.ssh/config, after which editors and `ssh aip-job-12` find the job."""
        lines = [f"Host aip-{self.login}", f"  HostName {self.host}", f"  Port {self.port}", f"  User {self.login}"]
        return "\n".join(lines)

    @property
    def known_host(self) -> str:
        """The gateway's key as a line of ~/.ssh/known_hosts; "" before it began for the first time."""
        line = host_key.public_line()
        name = self.host if self.port == 22 else f"[{self.host}]:{self.port}"
        return f"{name} {line}" if line else ""

    @property
    def fingerprint(self) -> str:
        return host_key.fingerprint()


def for_job(job: Job, *, reached_as: str) -> Entry:
    """How to reach a job.

    Args:
        reached_as: host and port under which the reader found the web server, which stands beside the gateway.
    """
    host = urlsplit(env.BASE_URL).hostname or urlsplit(f"//{reached_as}").hostname or "localhost"
    return Entry(host=host, port=env.SSH_PORT, login=f"job-{job.pk}")
