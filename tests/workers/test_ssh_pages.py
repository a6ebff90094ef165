"""SSH on the job page, in the API and at the command line."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import AuditEntry
from accounts.services import ssh_keys
from aiplatform import env
from aiplatform.client.main import main
from tests.cli import platform_double
from tests.conftest import signed_in
from tests.factories import work
from workers.access.ssh import access, host_key
from workers.access.ssh.models import SshSession
from workers.core.models import Job

LINE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"


@pytest.fixture
def job(alice, cluster):
    return work.job(alice, cluster, state="running", name="shell")


@pytest.fixture
def session(job, alice):
    return SshSession.objects.create(job=job, user=alice, way="key", key_name="laptop", address="10.0.0.7", gateway="g")


def api(user):
    client = APIClient()
    client.force_authenticate(user)
    return client


def test_job_page_shows_the_owner_how_to_enter_and_who_is_there(job, alice, session):
    page = signed_in(alice).get(f"/jobs/{job.pk}/?tab=ports").content.decode()

    assert f"ssh -p 8022 job-{job.pk}@testserver" in page
    assert "yet: add one, or use a one-time password." in page
    assert f"Host aip-job-{job.pk}" in page
    assert "10.0.0.7" in page
    ssh_keys.add(user=alice, name="laptop", line=LINE)
    assert (
        "Sign in with your SSH key; on a computer without your key, use"
        in signed_in(alice).get(f"/jobs/{job.pk}/panels/ssh/").content.decode()
    )


def test_job_page_lets_operators_end_sessions_but_not_enter(job, olga, session):
    browser = signed_in(olga)
    page = browser.get(f"/jobs/{job.pk}/?tab=ports").content.decode()

    assert "Only the owner of a job can connect to it by SSH." in page
    assert 'id="ssh-password"' not in page
    browser.post(f"/jobs/{job.pk}/ssh/sessions/{session.pk}/end/")
    session.refresh_from_db()
    assert session.end_requested_at is not None
    assert AuditEntry.objects.get(verb="ssh_session_ended").actor == "olga"
    refused = browser.post(f"/jobs/{job.pk}/ssh/password/", follow=True)
    assert "Only the owner" in refused.content.decode()


@pytest.mark.parametrize("why", ["over", "off", "kind"])
def test_job_page_has_no_panel_where_nobody_comes_in(why, job, alice, monkeypatch):
    if why == "off":
        monkeypatch.setattr(env, "SSH_PORT", 0)
    else:
        changed = {"state": "succeeded"} if why == "over" else {"kind": "unheard-of"}
        Job.objects.filter(pk=job.pk).update(**changed)

    assert 'id="h-ssh"' not in signed_in(alice).get(f"/jobs/{job.pk}/panels/ssh/").content.decode()


def test_password_page_shows_it_once_and_stores_no_copy(job, alice):
    answer = signed_in(alice).post(f"/jobs/{job.pk}/ssh/password/")
    secret = answer.context["secret"]

    assert secret in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    assert access.by_password(str(job.pk), secret, address="10.0.0.1").user == alice.pk
    assert signed_in(alice).get(f"/jobs/{job.pk}/ssh/password/").status_code == 405


def test_strangers_find_neither_entry_nor_sessions(job, bob, session):
    for method, path in [
        ("get", "ssh/"), ("post", "ssh/passwords/"), ("get", "ssh/sessions/"),
        ("post", f"ssh/sessions/{session.pk}/end/"),
    ]:  # fmt: skip
        assert getattr(api(bob), method)(f"/api/v1/jobs/{job.pk}/{path}").status_code == 404
    assert signed_in(bob).post(f"/jobs/{job.pk}/ssh/password/").status_code == 404
    assert signed_in(bob).post(f"/jobs/{job.pk}/ssh/sessions/{session.pk}/end/").status_code == 404


def test_session_of_another_job_is_not_ended_through_mine(job, alice, bob, cluster, session):
    other = work.job(bob, cluster, state="running")

    assert api(bob).post(f"/api/v1/jobs/{other.pk}/ssh/sessions/{session.pk}/end/").status_code == 404
    session.refresh_from_db()
    assert session.end_requested_at is None


def test_api_tells_the_entry_makes_passwords_and_ends_sessions(job, alice, olga, session, settings):
    host_key.store(b"private", LINE.encode() + b" comment\n")

    entry = api(alice).get(f"/api/v1/jobs/{job.pk}/ssh/").json()
    made = api(alice).post(f"/api/v1/jobs/{job.pk}/ssh/passwords/")
    listed = api(alice).get(f"/api/v1/jobs/{job.pk}/ssh/sessions/").json()
    ended = api(alice).post(f"/api/v1/jobs/{job.pk}/ssh/sessions/{session.pk}/end/")
    by_operator = api(olga).post(f"/api/v1/jobs/{job.pk}/ssh/passwords/")

    assert entry["known_host"] == f"[testserver]:8022 {LINE}"
    assert entry["fingerprint"].startswith("SHA256:")
    assert (entry["enabled"], entry["may_enter"], entry["login"]) == (True, True, f"job-{job.pk}")
    assert api(olga).get(f"/api/v1/jobs/{job.pk}/ssh/").json()["may_enter"] is False
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    assert access.by_password(str(job.pk), made.json()["password"], address="10.0.0.1") is not None
    assert [row["key_name"] for row in listed] == ["laptop"]
    assert ended.status_code == 202
    assert (by_operator.status_code, by_operator.json()["code"]) == (403, "not_allowed")


def test_api_refuses_passwords_where_they_open_nothing(job, alice, monkeypatch):
    monkeypatch.setattr(env, "SSH_PORT", 0)
    off = api(alice).post(f"/api/v1/jobs/{job.pk}/ssh/passwords/")
    monkeypatch.undo()
    Job.objects.filter(pk=job.pk).update(state="succeeded")
    over = api(alice).post(f"/api/v1/jobs/{job.pk}/ssh/passwords/")

    assert (off.status_code, off.json()["code"]) == (409, "no_ssh")
    assert (over.status_code, over.json()["code"]) == (409, "job_over")


def test_base_url_names_the_gateways_host(job, alice, monkeypatch):
    monkeypatch.setattr(env, "BASE_URL", "https://ai.example.org:8443")

    assert api(alice).get(f"/api/v1/jobs/{job.pk}/ssh/").json()["command"] == f"ssh -p 8022 job-{job.pk}@ai.example.org"


def test_entry_needs_a_session_of_its_own(job):
    assert Client().post(f"/jobs/{job.pk}/ssh/password/").status_code == 302


# --- aip ssh

ENTRY = {
    "enabled": True, "may_enter": True, "host": "127.0.0.1", "port": 8022, "login": "job-7",
    "command": "ssh -p 8022 job-7@127.0.0.1", "config": "Host aip-job-7\n  HostName 127.0.0.1",
    "known_host": f"[127.0.0.1]:8022 {LINE}", "fingerprint": "SHA256:x",
}  # fmt: skip
SSH = """#!{python}
import os, pathlib, subprocess, sys
known = next(word.partition("=")[2] for word in sys.argv if word.startswith("UserKnownHostsFile="))
asker = os.environ.get("SSH_ASKPASS")
asked = subprocess.run([asker, "Password:"], capture_output=True, text=True).stdout if asker else ""
pathlib.Path("told").write_text(repr((sys.argv[1:], pathlib.Path(known).read_text(), asked)))
sys.exit(9)
"""


@pytest.fixture
def aip(tmp_path, monkeypatch):
    """`aip(…)` against a double of the platform, with a double of ssh: (call, platform, what ssh was told)."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(SSH.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}/usr/bin:/bin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SSH_ASKPASS", raising=False)
    with platform_double.running() as platform:
        platform.answers("GET /api/v1/jobs/7/ssh/", ENTRY)
        platform.answers("POST /api/v1/jobs/7/ssh/passwords/", {"password": "abcd-efgh"}, status=201)
        monkeypatch.setenv("AIP_URL", platform.url)
        monkeypatch.setenv("AIP_TOKEN", "aip_alice")
        yield lambda *words: main(["ssh", *words]), platform, lambda: eval(Path("told").read_text())


@pytest.mark.sockets("a platform's double")
def test_aip_ssh_brings_password_and_host_key_and_ends_with_sshs_code(aip):
    call, _platform, told = aip

    assert call("-L", "8888:localhost:8888", "-t", "7", "--", "nvidia-smi", "-L") == 9
    argv, known, asked = told()
    assert asked == "abcd-efgh\n"
    assert known == ENTRY["known_host"] + "\n"
    assert argv[:3] == ["-t", "-L", "8888:localhost:8888"]
    assert argv[-7:] == ["-p", "8022", "-l", "job-7", "--", "127.0.0.1", "nvidia-smi -L"]
    assert "abcd-efgh" not in str(argv)


@pytest.mark.sockets("a platform's double")
def test_aip_ssh_prints_what_other_programs_need_and_makes_no_password(aip, capsys):
    call, platform, told = aip

    codes = [call("--print", "job-7"), call("--config", "7"), call("--key-only", "7")]

    assert codes == [0, 0, 9]
    assert capsys.readouterr().out == f"{ENTRY['command']}\n{ENTRY['config']}\n"
    assert told()[2] == ""
    assert platform.asked("POST /api/v1/jobs/7/ssh/passwords/") == []


@pytest.mark.sockets("a platform's double")
@pytest.mark.parametrize("words", [("7", "-N"), ("seven",)])
def test_aip_ssh_says_how_it_is_written(words, aip, capsys):
    call, _platform, _told = aip

    assert call(*words) == 2
    assert "job number" in capsys.readouterr().err


def test_who_acts_for_somebody_gets_no_password_into_their_jobs(job, alice, as_olga):
    as_olga.post(f"/people/{alice.pk}/take-over/")

    said = [
        as_olga.post(f"/{path}") for path in (f"jobs/{job.pk}/ssh/password/", f"api/v1/jobs/{job.pk}/ssh/passwords/")
    ]

    assert [answer.status_code for answer in said] == [403, 403]
    assert not AuditEntry.objects.filter(verb="ssh_password_made").exists()
