"""What the SSH gateway costs: `python -m tests.bench.ssh [--times 40] [--mb 200]`.

A real `up` on a folder of its own, one job in the strongest sandbox of this machine, and Debian's programs: the time of
`ssh job true`, copies both ways, twenty sessions at once, and the gateway's memory.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.journeys.up import PASSWORD, Browser, Up, call, first_admin, running, until
from tests.running import free_port, printed_in

SESSIONS = 20


class Client:
    """OpenSSH's programs with a key of their own."""

    def __init__(self, home: Path, port: int, job: int) -> None:
        self.port, self.at = str(port), f"job-{job}@127.0.0.1"
        self.options = [
            "-F", "none", "-i", str(home / "id"), "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no",
            "-o", f"UserKnownHostsFile={home}/known", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes",
        ]  # fmt: skip

    def timed(self, *argv: str) -> float:
        """Run a program; its seconds."""
        begun = time.perf_counter()
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=600)
        assert done.returncode == 0, done
        return time.perf_counter() - begun

    def ssh(self, *command: str) -> float:
        return self.timed("ssh", *self.options, "-p", self.port, self.at, *command)

    def scp(self, source: str, target: str) -> float:
        return self.timed("scp", *self.options, "-P", self.port, source, target)


def enter(up: Up, home: Path, token: str) -> tuple[int, str]:
    """A running job that Olga may enter: its number, and its outputs."""
    home.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / "id"], check=True)
    browser = Browser(up.url)
    browser.post("/login/", username="olga", password=PASSWORD)
    browser.post("/account/ssh-keys/", name="bench", line=(home / "id.pub").read_text().strip())
    body = {"command": "echo in $AIP_OUTPUT_DIR; sleep 3600", "cpus": 0.5}
    made = call(up.url, token, "POST", "commands/", body)[1]

    def folder() -> str:
        text = printed_in((call(up.url, token, "GET", f"jobs/{made['id']}/log/")[1] or {}).get("text", ""))
        return text.split()[1] if text.startswith("in /") else ""

    return made["id"], until(folder, 90, "the job did not start")


def memory_mib(up: Up, word: str) -> float:
    """Memory of a process of `up` that is its own or its share of what is shared."""
    for pid in up.children():
        if word in Path(f"/proc/{pid}/cmdline").read_text():
            rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            return sum(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1024
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--mb", type=int, default=200)
    options = parser.parse_args()
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="aip-bench-") as folder:
        home = Path(folder) / "home"
        with running(Path(folder) / "p", AIP_SSH_PORT=str(port)) as up:
            token = first_admin(up)
            job, outputs = enter(up, home, token)
            client = Client(home, port, job)
            client.ssh("true")
            spans = sorted(client.ssh("true") for _i in range(options.times))
            print(f"ssh true: p50 {statistics.median(spans):.3f} s, p95 {spans[int(len(spans) * 0.95)]:.3f} s")
            data = home / "data.bin"
            data.write_bytes(os.urandom(1 << 20) * options.mb)
            for way, source, target in (
                ("up", str(data), f"{client.at}:{outputs}/data.bin"),
                ("down", f"{client.at}:{outputs}/data.bin", str(home / "back.bin")),
            ):
                seconds = client.scp(source, target)
                print(f"scp {way}: {options.mb} MiB in {seconds:.1f} s, {options.mb / seconds:.0f} MiB/s")
            assert (home / "back.bin").read_bytes() == data.read_bytes()
            begun = time.perf_counter()
            with ThreadPoolExecutor(SESSIONS) as pool:
                done = [pool.submit(client.ssh, "sleep", "3") for _i in range(SESSIONS)]
                time.sleep(2)
                print(f"gateway: {memory_mib(up, 'ssh_gateway'):.0f} MiB with {SESSIONS} sessions")
                for one in done:
                    one.result()
            print(f"sessions: {SESSIONS} of 3 s at once in {time.perf_counter() - begun:.1f} s")
            call(up.url, token, "POST", f"jobs/{job}/stop/")
            until(lambda: call(up.url, token, "GET", f"jobs/{job}/")[1]["ended_at"], 90, "the end of the job")


if __name__ == "__main__":
    main()
