"""The agent as devices get it, against the real server: killed at every step, offline, and lied to."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import signal
import subprocess
import threading
import zipfile
from pathlib import Path

import pytest

from inference.delivery.edge import fleet, keys, packages
from inference.delivery.edge.device.trust import canonical
from tests.factories import models as factory
from tests.inference.edge_device import Device, predict, released, row, wait_for
from tests.long_form import first
from tests.running import free_port

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sockets("an agent asks the platform, and answers pictures"),
]
STEPS = (
    "downloading",
    "unpacked",
    "synced",
    "stored",
    "testing",
    "tested",
    "trial",
    "previous",
    "switched",
    "healthy",
    "dropping",
)


@pytest.fixture
def group(alice):
    return fleet.create(user=alice, name="Gates")


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def device(alice, group, tmp_path, live_server):
    made = Device(tmp_path / "device", live_server.url)
    _row, code = fleet.add_device(group=group, name="gate-1", by=alice)
    done = made.enrol(code)
    assert done.returncode == 0, done.stderr
    return made


def test_agent_is_enrolled_fetches_swaps_reports_and_answers_as_the_model_does(alice, group, version, device):
    wanted = released(group, version, alice)
    process = subprocess.Popen(
        device.command("run", "--port", str(device.port), "--every", "0.2"), env={"PATH": os.environ["PATH"]},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        reported = wait_for(lambda: row(group).outcome in ("same", "updated") and row(group))
        answer = predict(device.port)
        wait_for(lambda: row(group).counters.get("requests"))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()

    assert reported.package == wanted == device.installed
    assert answer["task"] == "detection"
    assert row(group).counters["requests"] == 1
    assert row(group).hardware["cores"] >= 1
    timed = row(group).speeds.get()
    assert timed.version == version
    assert 0 < timed.p50_ms <= timed.p95_ms
    assert (timed.provider, timed.threads) == ("CPUExecutionProvider", os.cpu_count())
    assert [report.outcome for report in row(group).reports.all()][-1] == "updated"
    assert device.is_whole()


def test_token_of_a_device_lies_where_only_its_owner_reads_it_and_a_code_works_once(alice, group, device):
    assert (device.root / "device.json").stat().st_mode & 0o777 == 0o600
    content = json.loads((device.root / "device.json").read_text())
    assert content["token"] not in str(row(group).__dict__)
    again = Device(device.folder.with_name("other"), device.server)
    _made, code = fleet.add_device(group=group, name="gate-2", by=alice)

    assert again.enrol("nonsense").returncode == 1
    assert again.enrol(code).returncode == 0
    assert again.enrol(code).returncode == 1


@pytest.mark.parametrize("step", first(2, ["downloading", "switched", "synced"]))
def test_agent_killed_in_an_update_never_has_half_a_model_and_ends_with_the_new_one(
    alice, group, version, device, tmp_path, step
):
    killed_at(step, alice, group, version, device, tmp_path)


@pytest.mark.chaos
@pytest.mark.parametrize(
    "step", first(2, ["dropping", "tested", *(s for s in STEPS if s not in ("dropping", "tested"))])
)
def test_agent_killed_at_each_step_never_has_half_a_model(alice, group, version, device, tmp_path, step):
    killed_at(step, alice, group, version, device, tmp_path)


def killed_at(step, alice, group, version, device, tmp_path):
    """Kill an update from one model to another at a step; the next rounds must end with the new one."""
    before = released(group, version, alice)
    assert device.round() == "updated"
    newer = factory.model_version(alice, tmp_path, name="newer", task="segmentation", model=version.model)
    wanted = released(group, newer, alice)
    if step == "dropping":  # the third is the first that an old one goes for
        assert device.round() == "updated"
        wanted = released(group, factory.model_version(alice, tmp_path, name="third", task="tagging"), alice)

    output = device.round(AIP_EDGE_DIE=step)

    assert output.startswith("died -9"), output
    assert device.installed in (before, wanted) or step == "dropping"
    assert device.is_whole()
    assert not [path for path in (device.root / "store").iterdir() if ".tmp" not in path.name and not is_intact(path)]
    for _round in range(2):
        last = device.round()
    assert last == "same"
    assert device.installed == wanted
    assert not list((device.root / "store").glob("*.tmp"))


def is_intact(folder: Path) -> bool:
    done = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, capture_output=True, check=False)
    return done.returncode == 0


def test_package_that_came_damaged_is_refused_and_the_next_download_begins_anew(alice, group, version, device):
    wanted = released(group, version, alice)
    file = packages.package_file(wanted)
    good = file.read_bytes()
    file.write_bytes(good[:-10] + b"x" * 10)

    assert device.round() == "damaged"
    file.write_bytes(good)
    assert device.round() == "updated"
    assert device.is_whole()


def test_cut_download_goes_on_where_it_ended(alice, group, version, device):
    wanted = released(group, version, alice)
    good = packages.package_file(wanted).read_bytes()
    (device.root / "part").mkdir(parents=True, exist_ok=True)
    (device.root / "part" / wanted).write_bytes(good[: len(good) // 2])
    packages.package_file(wanted).write_bytes(
        b"-" * (len(good) // 2) + good[len(good) // 2 :]
    )  # only the rest is right

    assert device.round() == "updated"


def test_model_that_fails_its_test_is_refused_reported_and_remembered(alice, group, version, device, tmp_path):
    before = released(group, version, alice)
    assert device.round() == "updated"
    broken = released(group, factory.model_version(alice, tmp_path, name="broken", task="tagging"), alice)
    spoil(broken, group, "run.py", b"import sys\nsys.exit('no such operator')\n")

    assert device.round() == "failed_self_test"
    assert device.installed == before
    assert row(group).detail == "no such operator"
    assert not (device.root / "store" / row(group).failed).exists()
    group.refresh_from_db()
    assert group.halted
    assert device.round() == "same"  # the release is halted: it should run what it runs


def test_model_that_passes_its_test_and_does_not_serve_is_rolled_back(alice, group, version, device, tmp_path):
    before = released(group, version, alice)
    assert device.round() == "updated"
    broken = released(group, factory.model_version(alice, tmp_path, name="broken", task="tagging"), alice)
    run = b"print('{\"predictions\": []}')\n"
    spoil(broken, group, "run.py", run, "inference/kit/model_io/requested.py", b"raise RuntimeError('cannot serve')\n")

    assert device.round() == "rolled_back"
    assert device.installed == before
    assert device.is_whole()


@pytest.mark.long
@pytest.mark.parametrize("step", ["bad", "back"])
def test_agent_killed_while_it_goes_back_is_back_at_the_next_start(alice, group, version, device, tmp_path, step):
    before = released(group, version, alice)
    assert device.round() == "updated"
    broken = released(group, factory.model_version(alice, tmp_path, name="broken", task="tagging"), alice)
    run = b"print('{\"predictions\": []}')\n"
    spoil(broken, group, "run.py", run, "inference/kit/model_io/requested.py", b"raise RuntimeError('cannot serve')\n")
    assert device.round(AIP_EDGE_DIE=step).startswith("died -9")

    outcomes = [device.round() for _round in range(2)]

    assert outcomes[-1] in ("same", "bad_package")
    assert device.installed == before
    assert row(group).package == before


def test_package_whose_test_ends_the_agent_is_given_up(alice, group, version, device):
    released(group, version, alice)
    for _start in range(3):
        assert device.round(AIP_EDGE_DIE="testing").startswith("died -9")

    assert device.round() == "failed_self_test"
    assert row(group).detail == "its self-test ended the agent"


@pytest.mark.long
def test_model_that_starts_no_more_is_told(alice, group, version, device):
    released(group, version, alice)
    assert device.round() == "updated"
    (device.root / "current" / "inference" / "server" / "requested.py").write_text("raise RuntimeError('broken disk')")

    assert device.round() == "not_running"
    assert row(group).outcome == "not_running"


def test_words_that_are_old_or_for_others_are_refused_and_the_model_stays(alice, group, version, device, monkeypatch):
    before = released(group, version, alice)
    assert device.round() == "updated"
    honest, outcomes = keys.signed, {}

    for name, value in (("number", 0), ("device", "0" * 32), ("expires", 1)):
        false = {name: value}
        monkeypatch.setattr(
            keys, "signed", lambda document, device, false=false: honest({**document, **false}, device=device)
        )
        outcomes[name] = device.round(), device.installed

    assert outcomes == {
        "number": ("older", before),
        "device": ("wrong_device", before),
        "expires": ("expired", before),
    }


def test_word_of_a_stranger_is_refused_with_keys_and_without(alice, group, version, device, monkeypatch):
    before = released(group, version, alice)
    assert device.round() == "updated"
    honest = keys.signed

    def forged(document, device):
        content = honest(document, device=device)
        return content | {"document": content["document"] | {"number": 99}}

    monkeypatch.setattr(keys, "signed", forged)
    assert device.round() == "bad_signature"
    hidden = device.folder / "without"
    (hidden / "cryptography").mkdir(parents=True)
    (hidden / "cryptography" / "__init__.py").write_text("raise ImportError")
    assert device.round(PYTHONPATH=str(hidden)) == "bad_signature"
    assert device.installed == before
    monkeypatch.setattr(keys, "signed", honest)
    released(group, version, alice, share=50)
    assert device.round(PYTHONPATH=str(hidden)) == "same"


def test_devices_follow_a_rotation_of_the_key_and_no_older_one(alice, group, version, device, monkeypatch):
    released(group, version, alice)
    assert device.round() == "updated"
    old = json.loads((keys.folder() / "keys.json").read_text())
    keys.rotate()
    released(group, version, alice)
    assert device.round() == "same"
    assert json.loads((device.root / "trust.json").read_text())["version"] == 2

    monkeypatch.setattr(keys, "_load", lambda: old)  # a thief with the key of before
    assert device.round() in ("older", "bad_signature")


def test_thief_with_the_key_rules_until_the_key_is_rotated_and_no_longer(alice, group, version, device, monkeypatch):
    before = released(group, version, alice)
    assert device.round() == "updated"
    honest = keys.signed
    high = {"number": 2**31, "trust": 2**31}
    monkeypatch.setattr(keys, "signed", lambda document, device: honest({**document, **high}, device=device))
    assert device.round() == "same"
    monkeypatch.setattr(keys, "signed", honest)
    released(group, version, alice)
    assert device.round() == "older"

    keys.rotate()
    released(group, version, alice)

    assert device.round() == "same"
    assert device.installed == before


def test_device_works_offline_and_a_revoked_one_gets_no_other_model(alice, group, version, device):
    released(group, version, alice)
    assert device.round() == "updated"
    content = json.loads((device.root / "device.json").read_text())
    (device.root / "device.json").write_bytes(canonical(content | {"server": f"http://127.0.0.1:{free_port()}"}))
    assert device.round() == "offline"
    (device.root / "device.json").write_bytes(canonical(content))

    fleet.revoke(device=row(group), by=alice)

    assert device.round() == "revoked"
    assert device.is_whole()


def test_second_agent_on_one_folder_is_refused(group, device):
    command = device.command("run", "--port", "0", "--every", "60")
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: row(group).outcome)
        second = device.ran("run", "--once", "--port", "0")
    finally:
        first.kill()
        first.wait()

    assert second.returncode == 1
    assert "Another agent" in second.stderr


@pytest.mark.long
def test_agent_that_dies_while_it_times_a_model_gives_up_and_keeps_the_model(alice, group, version, device):
    wanted = released(group, version, alice)

    for _try in range(3):
        assert device.round(AIP_EDGE_DIE="timing").startswith("died -9")
    assert device.round(AIP_EDGE_DIE="timing") == "same"

    assert device.installed == wanted
    assert not row(group).speeds.exists()


def spoil(sha: str, group, *changes: object) -> None:
    """Change files of a package, as if it had been released so."""
    import hashlib

    from inference.delivery.edge.models import EdgePackage

    pairs = dict(zip(changes[::2], changes[1::2], strict=True))
    path = packages.package_file(sha)
    with zipfile.ZipFile(path) as package:
        content = {name: pairs.get(name, package.read(name)) for name in package.namelist()}
    with zipfile.ZipFile(path, "w") as package:
        for name, data in content.items():
            package.writestr(zipfile.ZipInfo(name), data)
    data = path.read_bytes()
    made = hashlib.sha256(data).hexdigest()
    path.rename(packages.package_file(made))
    EdgePackage.objects.filter(sha256=sha).update(sha256=made, size_bytes=len(data))


def test_token_never_follows_the_server_to_another_address(alice, group, version, device, live_server):
    released(group, version, alice)
    content = json.loads((device.root / "device.json").read_text())
    paths: list[str] = []

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            self.send_response(302)
            self.send_header("Location", f"{live_server.url}{self.path}")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        moved = content | {"server": f"http://127.0.0.1:{server.server_port}"}
        (device.root / "device.json").write_bytes(canonical(moved))
        outcome = device.round()
        server.shutdown()

    assert outcome == "server_refused"
    assert paths[0] == "/api/v1/edge/word"
    assert row(group).outcome == ""
