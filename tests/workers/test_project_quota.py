"""Project quotas. The kernel's answers are played here: this machine's kernel need not have quotas."""

from __future__ import annotations

import errno
from types import SimpleNamespace

import pytest

from workers.supervisor import disk_limit, project_quota
from workers.supervisor.disk_limit import DiskLimit
from workers.supervisor.limit_checks import LimitChecks
from workers.supervisor.project_quota import ProjectQuota

MIB = 1 << 20
MOUNTS = {
    "xfs": ("xfs", frozenset({"rw", "prjquota"})),
    "ext4": ("ext4", frozenset({"rw", "prjquota"})),
    "plain": ("ext4", frozenset({"rw"})),
    "nfs": ("nfs4", frozenset({"rw"})),
}


class FakeKernel:
    """Keeps limits and use by project, as quotactl(2) does, and the projects of folders."""

    def __init__(self):
        self.limits, self.used, self.projects = {}, 0, []
        self.refused = 0

    def call(self, opened, command, project, content):
        values = project_quota._QUOTA.unpack(content)
        if command == project_quota._SETQUOTA:
            if self.refused:
                raise OSError(self.refused, "refused")
            assert values[-1] == project_quota._LIMITS
            self.limits[project] = values[0] * project_quota._UNIT
        return (0, 0, self.used, 0, 0, 0, 0, 0, 0)


@pytest.fixture
def kernel(monkeypatch):
    made = FakeKernel()
    monkeypatch.setattr(project_quota, "_call", made.call)
    monkeypatch.setattr(project_quota, "_may_administer", lambda: True)
    monkeypatch.setattr(project_quota.os, "geteuid", lambda: 0)
    monkeypatch.setattr(project_quota, "_mount_of", lambda folder, mounts: MOUNTS["xfs"])
    monkeypatch.setattr(
        project_quota, "_set_project", lambda opened, project, *, is_folder: made.projects.append((project, is_folder))
    )
    return made


def test_quota_bounds_the_project_and_marks_everything_in_the_folder(tmp_path, kernel):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").touch()
    (tmp_path / "link").symlink_to("/etc/passwd")
    quota = ProjectQuota([str(tmp_path)], 77)

    why = quota.set(MIB + 1)

    assert why == ""
    assert kernel.limits == {77: MIB + 1024}
    assert sorted(kernel.projects) == [(77, False), (77, True), (77, True)]
    quota.clear()
    assert kernel.limits == {77: 0}


def test_quota_that_the_kernel_refuses_is_not_used(tmp_path, kernel):
    kernel.refused = errno.EPERM

    assert "refused" in ProjectQuota([str(tmp_path)], 77).set(MIB)
    assert kernel.projects == []


def test_quota_leaves_a_project_alone_that_somebody_uses(tmp_path, kernel):
    kernel.used = 5

    assert ProjectQuota([str(tmp_path)], 77).set(MIB) == "its project number is in use"
    assert kernel.limits == {}


@pytest.mark.parametrize(
    ("mount", "why"),
    [("xfs", ""), ("ext4", ""), ("plain", "mounted without prjquota"), ("nfs", "has no project quota")],
)
def test_obstacle_names_what_is_missing(tmp_path, kernel, monkeypatch, mount, why):
    monkeypatch.setattr(project_quota, "_mount_of", lambda folder, mounts: MOUNTS[mount])

    assert (project_quota.obstacle([str(tmp_path)]) == "") == (why == "")
    assert why in project_quota.obstacle([str(tmp_path)])


def test_obstacle_is_a_right_that_is_missing(tmp_path, kernel, monkeypatch):
    monkeypatch.setattr(project_quota, "_may_administer", lambda: False)

    assert "CAP_SYS_ADMIN" in project_quota.obstacle([str(tmp_path)])


def test_mounts_are_read_from_this_machine(tmp_path):
    kind, options = project_quota._mount_of(str(tmp_path), project_quota._mounts())

    assert kind
    assert {"rw"} & options


def test_limit_by_quota_is_over_where_the_next_write_would_fail(tmp_path, kernel):
    limit = DiskLimit([str(tmp_path)], 8 * MIB, lambda: [], 77)
    assert limit.set_quota() == ""

    kernel.used = 8 * MIB - project_quota.SLACK_BYTES - 1
    limit.check(100.0)
    before = limit.is_over
    kernel.used += 1
    limit.check(102.0)

    assert limit.by_quota
    assert (before, limit.is_over) == (False, True)


def test_limit_without_a_quota_counts(tmp_path):
    limit = DiskLimit([str(tmp_path)], 8 * MIB, lambda: [], 0)

    assert limit.set_quota() == "no project number"
    limit.check(100.0)
    assert limit.used_bytes is not None
    assert not limit.is_used_up()


@pytest.mark.parametrize(("code", "used", "limit"), [(1, 8 * MIB, "disk"), (0, 8 * MIB, ""), (1, MIB, "")])
def test_program_that_fails_once_its_quota_is_used_up_failed_by_the_limit(tmp_path, kernel, code, used, limit):
    told = []
    checks = LimitChecks()
    checks.disk = disk_limit.DiskLimit([str(tmp_path)], 8 * MIB, lambda: [], 77)
    checks.disk.set_quota()
    kernel.used = used
    checks._code, checks.limit, checks.ladder = code, "", None
    checks.log = SimpleNamespace(add=lambda phase, what, **facts: told.append((what, facts)))

    checks._end_disk_limit()

    assert checks.limit == limit
    assert [what for what, _facts in told] == ["over_disk"] * bool(limit)
    assert kernel.limits == {77: 0}
