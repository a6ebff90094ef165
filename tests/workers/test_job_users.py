"""The user a job runs under where the platform is root: what it gets, what stays closed, what operators are told."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from aiplatform import env
from aiplatform.cli import doctor, up
from aiplatform.lib import env_texts
from tests.conftest import signed_in
from tests.factories import work
from tests.running import printed
from tests.workers.launched import ended, node, placed
from workers.core.runs import RunDir
from workers.execution import job_users, launch, protection, resuming, tickets
from workers.resources.nodes import guards
from workers.supervisor import sandbox, tiers

__all__ = ["node", "placed"]  # fixtures
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has users to hand out")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def root(settings):
    """A data folder beneath folders that everybody may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="aip-root-"))
    settings.DATA_ROOT = folder
    job_users.can_chown.cache_clear()
    yield folder
    job_users.can_chown.cache_clear()
    while folder.exists():  # a supervisor that is ending still replaces files
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)


@as_root
def test_job_users_are_the_default_where_the_platform_is_root():
    tickets.tier.cache_clear()

    assert tickets.tier()[0] == tiers.best_tier(at_most=sandbox.OWN_UID)[0] >= sandbox.OWN_UID


@as_root
@pytest.mark.django_db
@pytest.mark.parametrize("tier", [0, 1, 2, 3])
def test_job_users_run_jobs_in_every_tier_and_close_their_folders(placed, alice, bob, root, monkeypatch, tier):
    bwrap = tiers.find_bwrap() if tier >= sandbox.BUBBLEWRAP else ""
    monkeypatch.setattr(tickets, "tier", lambda: (tier, bwrap))
    root.chmod(0o750)
    program = "import os, pwd; open(os.environ['AIP_OUTPUT_DIR'] + '/mine', 'w').close(); print(os.getuid())"
    if tier >= sandbox.BUBBLEWRAP:
        program += "; print(pwd.getpwuid(os.getuid()).pw_name, pwd.getpwuid(0).pw_name)"
    job, attempt = placed(["/usr/bin/python3", "-c", program])
    monkeypatch.setattr(tiers, "python_folders", lambda: [])  # ours may lie in root's home
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3") if tier < 2 else None

    launch.start(attempt.pk)
    record, run = ended(job), RunDir.for_attempt(job.pk, 1)
    uid = env.JOB_UIDS + alice.pk

    assert record["code"] == 0, run.log.read_text()
    assert printed(run.log).split() == [str(uid), *(["job", "root"] if tier >= sandbox.BUBBLEWRAP else [])]
    assert (run.outputs / "mine").stat().st_uid == uid
    assert (mode(run.path), run.path.stat().st_gid, run.path.stat().st_uid) == (0o750, uid, 0)
    assert mode(run.path / "launch.json") == 0o600
    if tier < sandbox.BUBBLEWRAP:  # the group of all jobs passes the data folder, and lists nothing
        assert (mode(root), root.stat().st_gid) == (0o710, env.JOB_UIDS)
    else:
        assert (mode(root), root.stat().st_gid) == (0o750, 0)


@as_root
@pytest.mark.parametrize("tier", [0, 3])
def test_job_users_of_one_person_do_not_read_the_run_of_another(root, tier):
    """A neighbour's user with a shell on the machine, as below tier 2."""
    run = root / "jobs" / "1" / "1"
    run.mkdir(parents=True)
    (run / "log.txt").write_text("secret")
    job_users.enclose(run, env.JOB_UIDS + 1)
    job_users.open_way(root)
    command = f"cat {run}/log.txt"

    def tries(uid: int) -> int:
        return os.waitstatus_to_exitcode(
            os.system(f"setpriv --reuid={uid} --regid={uid} --groups={env.JOB_UIDS} {command} >/dev/null 2>&1")
        )

    assert (tries(env.JOB_UIDS + 1), tries(env.JOB_UIDS + 2) != 0) == (0, True)


@as_root
def test_job_users_stay_root_without_rights_where_the_way_is_closed(root, caplog):
    closed = root / "home"
    closed.mkdir(mode=0o700)

    told = job_users.who(env.JOB_UIDS + 1, sandbox.LANDLOCK, [closed / "python"])

    assert told == {"uid": 0}
    assert str(closed) in caplog.text
    told = job_users.who(env.JOB_UIDS + 1, sandbox.BUBBLEWRAP, [closed / "python"])
    assert told == {"uid": env.JOB_UIDS + 1, "groups": []}


@as_root
def test_job_users_are_not_handed_out_on_a_storage_that_gives_nothing_away(root, monkeypatch):
    def refused(*_args: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    assert job_users.uid_of(7) == env.JOB_UIDS + 7
    job_users.can_chown.cache_clear()
    monkeypatch.setattr(os, "fchown", refused)

    assert job_users.uid_of(7) == 0
    assert str(root) in protection.obstacle()


@as_root
def test_job_users_read_what_the_same_job_wrote_when_jobs_still_ran_as_root(root):
    """Checkpoints of before an upgrade are 0640 of root."""
    old = root / resuming.FOLDER / "step-1"
    old.mkdir(parents=True)
    old.chmod(0o750)
    (old / "weights").write_text("w")
    (old / "weights").chmod(0o640)

    job_users.lend(root / resuming.FOLDER, env.JOB_UIDS + 1)

    for path in (old, old / "weights"):
        assert (path.stat().st_uid, path.stat().st_gid) == (0, env.JOB_UIDS + 1)


@as_root
@pytest.mark.django_db
@pytest.mark.parametrize("tier", [0, 3])
def test_job_users_open_cards_that_are_kept_for_a_group(placed, root, monkeypatch, tier):
    """Device files of 0660 and a group of their own, as the driver's options allow."""
    card, common = (Path(f"/dev/aip-{name}-{os.getpid()}") for name in ("nvidia0", "nvidiactl"))
    for path, rights in ((card, 0o660), (common, 0o666)):
        path.write_text("")
        path.chmod(rights)
    os.chown(card, 0, 54_321)
    bwrap = tiers.find_bwrap() if tier >= sandbox.BUBBLEWRAP else ""
    monkeypatch.setattr(tickets, "tier", lambda: (tier, bwrap))
    monkeypatch.setattr(tickets, "device_files", lambda _cards: [str(card), str(common), "/dev/none"])
    monkeypatch.setattr(tiers, "python_folders", lambda: [])
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    program = f"import os; os.open({str(card)!r}, os.O_RDWR); print(os.getgroups())"
    job, attempt = placed(["/usr/bin/python3", "-c", program])

    launch.start(attempt.pk)
    record, run = ended(job), RunDir.for_attempt(job.pk, 1)
    card.unlink()
    common.unlink()

    assert record["code"] == 0, run.log.read_text()
    assert "54321" in run.log.read_text()


@as_root
@pytest.mark.django_db
def test_job_users_who_may_not_read_the_data_are_told_before_the_program_runs(placed, root):
    private = root / "registered"
    private.mkdir(mode=0o750)
    job, attempt = placed(["true"], read_only=[private])

    launch.start(attempt.pk)
    job.refresh_from_db()

    assert (job.state, job.reason) == ("failed", "launch_failed")
    assert f"who cannot read {private}" in str(job.message)


def test_up_closes_the_data_folder_and_the_database_of_an_older_installation(tmp_path, monkeypatch):
    monkeypatch.setattr(env, "DATA_ROOT", tmp_path / "data")
    database = tmp_path / "data" / "aiplatform.sqlite3"
    (tmp_path / "data").mkdir(mode=0o755)
    for path in (database, database.with_name("aiplatform.sqlite3-wal")):
        path.write_text("")
        path.chmod(0o644)

    up.close_to_others()

    assert mode(tmp_path / "data") == 0o750
    assert {mode(path) for path in (tmp_path / "data").iterdir()} == {0o640}
    (tmp_path / "data").chmod(0o700)
    up.close_to_others()
    assert mode(tmp_path / "data") == 0o700  # what is stricter stays


@pytest.mark.django_db
def test_node_page_says_what_does_not_protect_it(alice):
    machine = work.node("n1", facts={"guards": {"user": False, "rights": True, "calls": True, "sockets": False}})

    page = signed_in(alice).get(f"/cluster/nodes/{machine.pk}/").content.decode()

    assert str(guards.GUARDS["user"].missing).replace("'", "&#x27;") in page
    assert str(guards.GUARDS["sockets"].missing) in page
    assert str(guards.GUARDS["calls"].missing) not in page
    assert "Isolation tier" in signed_in(alice).get(f"/cluster/nodes/{work.node('old').pk}/").content.decode()


def test_doctor_says_in_words_what_protects_and_what_does_not(monkeypatch):
    protection.guards.cache_clear()
    found = [(finding.level, finding.text) for finding in doctor._sandbox()]
    protection.guards.cache_clear()
    monkeypatch.setattr(tickets, "tier", lambda: (0, ""))
    below = [(finding.level, finding.text) for finding in doctor._sandbox()]
    protection.guards.cache_clear()

    assert f"tier {tiers.best_tier()[0]}" in found[0][1]
    assert len(found) == 1 + len(guards.GUARDS)
    assert (doctor.WARN, str(guards.GUARDS["files"].missing)) in below
    assert (doctor.WARN, str(guards.GUARDS["sockets"].missing)) in below


def test_doctor_names_apparmor_where_it_forbids_namespaces(monkeypatch, tmp_path):
    (tmp_path / "switch").write_text("1\n")
    monkeypatch.setattr(protection, "APPARMOR", tmp_path / "switch")
    monkeypatch.setattr(tickets, "tier", lambda: (1, ""))
    monkeypatch.setattr(tiers, "bwraps", lambda: ["/opt/bwrap"])
    monkeypatch.setattr(tiers, "why_not", lambda _bwrap: "bwrap: setting up uid map: Permission denied")

    told = protection.remedy()

    assert "AppArmor" in told
    assert "profile aip-bwrap /opt/bwrap" in told


def test_best_tier_takes_the_bubblewrap_that_lays_folders_over_one_another_before_an_old_one(monkeypatch, tmp_path):
    said = {"old": "--bind", "new": "--bind --overlay-src"}
    for name, options in said.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{options}'\n")
        (tmp_path / name).chmod(0o755)
    found = [str(tmp_path / name) for name in said]
    monkeypatch.setattr(tiers, "bwraps", lambda: found)

    monkeypatch.setattr(tiers, "bwrap_works", lambda *_: True)
    assert tiers.best_tier()[1] == found[1]
    monkeypatch.setattr(tiers, "bwrap_works", lambda bwrap, *_: bwrap == found[0])
    assert tiers.best_tier()[1] == found[0]


def test_setting_of_allowed_calls_names_what_it_takes(monkeypatch):
    assert env_texts.some_of("ptrace", "bpf")("ptrace, bpf") == ["ptrace", "bpf"]
    with pytest.raises(ValueError, match="ptrace"):
        env_texts.some_of("ptrace")("mount")
    assert json.dumps(env.SANDBOX_CALLS) == "[]"
