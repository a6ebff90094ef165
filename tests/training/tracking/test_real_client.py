"""MLflow's own client, whole: what its users write runs against the platform and finds again what it reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.training.tracking import client
from tests.training.tracking.conftest import laptop_of
from training.experiments.models import Run, RunCurve
from training.experiments.tracking.models import LoggedModel, TrackedVersion

pytestmark = [pytest.mark.proof, pytest.mark.django_db(transaction=True)]

SCRIPTS = Path(__file__).with_name("scripts")


@pytest.fixture
def ran(alice, live_server, tmp_path):
    """`ran(name)`: what a script on Alice's laptop says it found."""
    if why := client.why_not_installed():
        pytest.skip(why)

    def run(name: str) -> dict:
        script = SCRIPTS.joinpath(f"{name}.py").read_text()
        secret = laptop_of(alice).secret
        done = client.run(script, address=f"{live_server.url}/api/mlflow", token=secret, folder=tmp_path)
        told = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(told[0])

    return run


def test_real_client_reports_a_loop_by_hand_and_finds_it_again(ran):
    found = ran("by_hand")

    uid = found.pop("uid")
    final = found.pop("metrics")
    assert found == {
        "status": "FINISHED", "params": {"lr": "0.1", "layers": "3"}, "kind": "a", "note": "*Hm*", "broken": "nan",
        "steps": list(range(20)), "many": 1000, "refused": "INVALID_PARAMETER_VALUE",
        "files": ["d.json", "figure.png", "notes", "table.json", "weights"], "size": 3_000_000, "same": True,
        "text": "hello", "found": [uid], "trials": ["rate 0.2", "rate 0.1"], "left": 2, "again": 3,
        "experiments": ["Default", "digits"],
    }  # fmt: skip
    assert (final["val/acc"], final["odd: ä"], final["many"]) == (0.95, 2.0, 999)
    run = Run.objects.get(uid=uid)
    assert (run.name, run.state, run.experiment, run.children.count()) == ("plain", "succeeded", "digits", 2)
    assert RunCurve.objects.get(run=run, key="loss").count == 20


@pytest.mark.long
def test_real_client_logs_what_scikit_learn_fits_and_registers_it(ran):
    found = ran("autolog")

    assert all(score > 0.9 for score in found.pop("scores").values())
    assert all(count > 5 for count in found.pop("params").values())
    model = found.pop("model")
    assert found == {
        "inputs": [1, 1, 1], "models": [1, 1, 2], "trials": 2, "status": "READY", "loaded": "LogisticRegression",
        "right": True, "version": "1", "names": ["iris"], "tags": {"checked": "yes"}, "by_name": ["1"],
        "uri": f"mlflow-artifacts:/models/{model}",
    }  # fmt: skip
    assert LoggedModel.objects.filter(status="LOGGED_MODEL_READY").count() == 4
    assert TrackedVersion.objects.get().logged.uid == model
