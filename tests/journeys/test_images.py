"""An engine of somebody's packages, built and run at a real platform from the terminal, shared and deleted."""

from __future__ import annotations

import json

import pytest

from tests.images.wheels import wheel
from tests.journeys.terminal import aip
from tests.journeys.up import call, first_admin, running

pytestmark = pytest.mark.journey


@pytest.mark.long
def test_image_is_built_run_kept_in_use_and_deleted_from_the_terminal(tmp_path):
    wheels, project = tmp_path / "wheels", tmp_path / "project"
    wheel(wheels, "ring", "1.0")
    project.mkdir()
    with running(tmp_path / "platform", AIP_ENGINE_INDEX=str(wheels)) as up:
        token = first_admin(up)

        def said(*words: str, code: int = 0) -> str:
            client = aip(up.url, token, project, *words)
            out, told = client.communicate(timeout=240)
            assert client.returncode == code, out + told
            return out if not code else told

        built = json.loads(said("images", "build", "rings", "-p", "ring==1.0", "--wait", "--json"))
        plain = said("run", "--no-code", "--no-outputs", "--cpus", "0.5", "--image", "rings", "--", "ring")
        first = said("run", "--no-code", "--no-outputs", "--cpus", "0.5", "--image", "platform", "--", "python", "-c",
                     "import sys, torch; print('in', sys.prefix)")  # fmt: skip
        waiting = said("run", "--no-code", "-d", "--cpus", "0.5", "--image", "rings", "--", "sleep", "600").split()[0]
        refused = said("images", "delete", "rings", "--yes", code=1)
        said("jobs", "stop", waiting)
        listed = said("images", "list")
        answer = call(up.url, token, "GET", f"images/{built['id']}/")[1]

    assert (built["state"], built["facts"]["torch"] != "", built["requirements"]) == ("ready", True, "ring==1.0")
    assert "ring 1.0" in plain.splitlines()
    assert f"in {tmp_path}/platform/engines/" in first
    assert f"rings is still used by Command sleep_600 ({waiting}) of" in refused
    assert {"rings", "platform", "jupyter", "tensorboard"} <= set(listed.split())
    assert answer["message"] == ""
