"""SIGHUP runs the code on disk: every process is replaced, and no request is refused or cut off meanwhile."""

from __future__ import annotations

import http.client
import signal
import threading

import pytest

from tests.journeys.up import Up, call, first_admin, running, until

CALLERS = 4


def roles(up: Up) -> dict[int, str]:
    """The processes that run all the time; the help site is built by one that ends."""
    return {pid: command for pid, command in up.commands().items() if " help_site " not in command}


@pytest.mark.journey
def test_reload_replaces_every_process_and_drops_no_request(tmp_path):
    with running(tmp_path / "data") as up:
        token = first_admin(up)
        before = roles(up)
        over, failed, answered = threading.Event(), [], [0] * CALLERS

        def caller(number: int) -> None:
            """Each request on a connection of its own, as the most of them are that a proxy passes on."""
            while not over.is_set():
                try:
                    link = http.client.HTTPConnection("127.0.0.1", up.port, timeout=60)
                    link.request("GET", "/api/v1/me/", headers={"Authorization": f"Bearer {token}"})
                    answer = link.getresponse()
                    answer.read()
                    if answer.status != 200:
                        failed.append(answer.status)
                    answered[number] += 1
                    link.close()
                except OSError as exc:
                    failed.append(repr(exc))

        callers = [threading.Thread(target=caller, args=(number,)) for number in range(CALLERS)]
        for thread in callers:
            thread.start()
        up.process.send_signal(signal.SIGHUP)
        up.wait("all roles run the new code")
        over.set()
        for thread in callers:
            thread.join()

        after = roles(up)
        assert failed == []
        assert min(answered) > 0
        assert sorted(after.values()) == sorted(before.values())
        assert [after[pid].split()[0].rpartition("/")[2] for pid in after.keys() & before.keys()] == ["valkey-server"]
        until(lambda: call(up.url, token, "GET", "me/")[0] == 200, 30, "An answer after the reload")
