"""A port of a job that really runs in its sandbox, with no network but its own loopback."""

import tempfile
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from tests.running import printed
from tests.running import wait_for as until
from tests.workers.launched import node, placed
from tests.workers.origin_served import serving, session_of
from workers.access.proxy import published_ports
from workers.access.proxy.connecting import through_exec_server
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import JobState
from workers.execution import launch
from workers.supervisor import records, sandbox

__all__ = ["node", "placed"]  # fixtures
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sockets("exec servers of jobs"),
]
SERVER = """
import http.server, os, socket, threading
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = " ".join(name for _, name in socket.if_nameindex()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
class Unix(http.server.ThreadingHTTPServer):
    address_family = socket.AF_UNIX
    def server_bind(self):
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "unix", 0
    def get_request(self): return self.socket.accept()[0], ("unix", 0)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 40000), Answer)
threading.Thread(target=server.serve_forever).start()
unix = Unix(os.environ["TMPDIR"] + "/lab.sock", Answer)
print("listening", flush=True)
unix.serve_forever()
"""


@pytest.fixture
def job(placed, kind, settings):
    kind.exec_server = True
    with tempfile.TemporaryDirectory(prefix="aip-r-") as folder:
        settings.RUN_DIR = Path(folder)
        job, attempt = placed(["python3", "-c", SERVER], own_network=True)
        launch.start(attempt.pk)
        run = RunDir.for_attempt(job.pk, 1)
        until(lambda: (run.path / records.SUPERVISOR).exists() and "listening" in printed(run.log))
        Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING)
        Attempt.objects.filter(pk=attempt.pk).update(state=JobState.RUNNING)
        job.refresh_from_db()
        yield job
        records.write_request(run.path, "kill")
        until(lambda: records.read(run.path / records.EXIT))


async def test_origin_reaches_ports_and_sockets_of_a_job_without_a_network(job, alice):
    attempt = await sync_to_async(job.attempts.get)()
    key = await sync_to_async(session_of)(alice)
    web = await sync_to_async(published_ports.publish)(job, port=40_000, by=alice, name="web")
    empty = await sync_to_async(published_ports.publish)(job, port=40_001, by=alice, name="empty")
    lab = await sync_to_async(published_ports.provide)(job, name="lab", socket="/tmp/lab.sock")
    async with serving(through_exec_server) as served:
        answers = {}
        for row in (web, lab, empty):
            cookie = await served.enter(row, key)
            address = f"{served.url}/jobs/{job.pk}/{row.name}/"
            async with served.client.get(address, headers={"Cookie": cookie}) as answer:
                answers[row.name] = answer.status, await answer.text()

    only = "lo" if (attempt.sandbox_tier or 0) >= sandbox.BUBBLEWRAP else answers["web"][1]
    assert (answers["web"], answers["lab"]) == ((200, only), (200, only))
    assert answers["empty"][0] == 502
    assert "not_listening" in answers["empty"][1]
