"""The demo calls a bad model bad and says why, and says early that it will take longer."""

import pytest

from aiplatform.cli.demo import verdict


@pytest.mark.parametrize(
    ("ap50", "figures", "works", "says"),
    [
        (0.9, {}, True, "works: AP50 0.90"),
        (0.7, {"steps": 360, "steps_planned": 360}, True, "could be better"),
        (0.11, {"steps": 80, "steps_planned": 360, "slowdown": 3.1}, False, "Only 80 of 360 steps"),
        (
            0.11,
            {"steps": 80, "steps_planned": 360, "slowdown": 3.1},
            False,
            "busy with other programs and took 3.1 times",
        ),
        (0.11, {"steps": 80, "steps_planned": 360, "slowdown": 1.0}, False, "this computer is slow"),
        (0.11, {"steps": 360, "steps_planned": 360}, False, "time is not the reason"),
    ],
)
def test_demo_verdict_never_calls_a_useless_model_success_and_names_the_reason(ap50, figures, works, says):
    said = verdict.judge(ap50, figures, minutes=2)

    assert said.works is works
    assert says in f"{said.headline} {said.why}"
    assert works or "does not work well" in said.headline


def test_demo_lateness_is_said_only_when_the_training_will_be_late():
    learning = {"phase": "learning", "eta_s": 60.0}

    assert verdict.lateness(learning, 50, 2) == ""
    assert "about 5 min instead of 2" in verdict.lateness({**learning, "eta_s": 260.0}, 40, 2)
    assert verdict.lateness({"phase": "packing", "eta_s": 900.0}, 5, 2) == ""
