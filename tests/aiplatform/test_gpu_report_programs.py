"""Programs of the GPU report, executed on CPUs: everything but the device is as on a node with GPUs."""

from __future__ import annotations

import pytest

from aiplatform.cli.gpu_report import jobs
from aiplatform.cli.gpu_report.checks import binding, device_errors, hardware, serving, sharing, training
from aiplatform.cli.gpu_report.definitions import Context
from workers.execution import measurement_jobs
from workers.resources.nodes.telemetry.probe import Card

pytestmark = [pytest.mark.proof, pytest.mark.sockets("ranks meet, a model server answers")]


@pytest.fixture
def context(tmp_path):
    tmp_path.chmod(0o755)
    yield Context([Card(0, "GPU-1", "Test GPU", 16_384), Card(1, "GPU-2", "Test GPU", 16_384)], tmp_path, 200, "cpu")
    measurement_jobs.end_all(tmp_path)


def test_binding_program_reports_what_it_can_open(context):
    found = jobs.run(context, "binding.py", "cpu")

    assert found == {"visible": 0, "uuid": "", "opened": []}


def test_share_program_holds_memory_and_computes_until_it_is_stopped(context):
    job = jobs.start(context, "share.py", "cpu", 2)

    assert job.wait_for_line("held", 100) == ["128"]
    assert job.wait_for_line("computing", 100) == []
    job.request("stop")
    job.wait_for(job.has_ended, "the program does not stop", 60)


def test_rates_are_measured(context):
    found = hardware.rates(context, side=64)

    assert found.keys() == {"float32_tflops", "bfloat16_tflops", "memory_gb_s"}
    assert found["memory_gb_s"] > 0


def test_ranks_exchange_and_train(context):
    found = hardware.collectives(context, size_mib=0.1)

    assert (found["ranks"], found["all_reduce"], found["broadcast"], found["all_gather"]) == (2, True, True, True)
    assert found["bus_gb_s"] > 0
    assert found["efficiency"] > 0
    assert found["group"] is True


def test_preset_is_compared_with_a_bare_loop(context):
    found = training.precision(context, seconds=0.5)

    assert found.keys() == {
        f"{name}_{what}" for name in ("fp32", "bf16") for what in ("step_ms", "bare_ms", "share")
    } | {"speedup"}
    assert all(value > 0 for value in found.values())


def test_loading_measures_how_long_a_training_waits(context):
    found = training.loading(context, seconds=0.5)

    assert 0 <= found["wait_share"] < 1
    assert found["images_s"] > 0


def test_preempted_training_continues_where_it_left(context):
    found = training.checkpoint(context)

    assert (found["code"], found["lost"], found["repeated"]) == (training.SUSPENDED, 0, 0)
    assert found["step"] >= training.STEPS


def test_model_is_served_and_answers_as_the_engine_does(context):
    found = serving.tensorrt(context)

    assert found["provider"] == "CPUExecutionProvider"
    assert found["difference"] == 0
    assert found["served_difference"] < 1e-5


def test_video_is_decoded_frame_by_frame(context):
    found = serving.video(context)

    assert (found["decoder"], found["whole"]) == ("software", True)


def test_simulated_xid_message_is_found_and_kept(context):
    found = device_errors.xid(context)

    assert (found["found"], found["kept"], found["located"]) == (True, True, False)


def test_program_that_fails_is_reported_with_the_end_of_its_log(context):
    with pytest.raises(measurement_jobs.Failed, match="invalid literal"):
        jobs.run(context, "share.py", "cpu", "many")


def test_out_of_memory_of_a_share_is_named_as_the_cause(context, monkeypatch):
    monkeypatch.setattr(sharing, "EVERYTHING", 1)
    program = "import torch\nraise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 64.00 MiB.')\n"
    monkeypatch.setattr(jobs, "PROGRAMS", context.folder)
    (context.folder / "share.py").write_text(program)

    assert sharing.out_of_memory(context) == {"code": 1, "cause": True}


def test_jobs_of_all_gpus_are_compared_with_what_they_were_given(context, monkeypatch):
    seen = {"visible": 1, "uuid": "1", "opened": ["nvidia0"]}
    monkeypatch.setattr(binding.jobs, "start", lambda *_given, devices, **_more: devices[0])
    monkeypatch.setattr(
        binding.jobs, "result", lambda card, _s: {**seen, "uuid": card.uuid.lower().removeprefix("gpu-")}
    )

    found = binding.visible(context)

    assert (found["jobs"], found["visible"], found["same"]) == (2, 1, True)
    assert found.get("foreign", 1) == 1  # the second job could open the first GPU
