"""A script with the SDK beside it says where the time of its steps goes, and is not disturbed by it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import pytest

from tests.factories import training as factory
from tests.factories import work
from training.programs import workdir
from training.runs import profiles

pytestmark = pytest.mark.django_db

LOOP = """
import time, torch
from torch.utils.data import DataLoader, Dataset
from aip import profile
class Slow(Dataset):
    def __len__(self): return 4 * 30
    def __getitem__(self, number): time.sleep({sleep}); return torch.randn(16), number
torch.set_num_threads(1)  # others work on these cores too
model = torch.nn.Sequential(torch.nn.Linear(16, 256), torch.nn.ReLU(), torch.nn.Linear(256, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = DataLoader(Slow(), batch_size=4)
def learn(images, numbers):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), numbers % 2)
    loss.backward()
    optimizer.step()
seen = []
"""


@pytest.fixture
def training(alice, machine, cells, code):
    """A training of own code, in progress."""
    made = factory.training(alice, name="own", data=cells, code=code, start_file="train.py", state="running")
    workdir.populate(work.run_dir(made.job), None)
    return made


def run(training, script, **env):
    """Run a script with the SDK beside it, as a job does; what it printed."""
    place = work.run_dir(training.job)
    told = {"AIP_METRICS_FILE": str(place.metrics), "AIP_OUTPUT_DIR": str(place.outputs), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, cwd=place.code, env=told | env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def written(training):
    return json.loads((work.run_dir(training.job).outputs / "profile" / "profile.json").read_text())


def test_sdk_profile_finds_the_parts_of_a_torch_loop_and_what_it_waits_for(training):
    run(training, LOOP.format(sleep=0.01) + """
for epoch in range(2):
    for images, numbers in profile(loader, steps=6, skip=2):
        seen += numbers.tolist()
        learn(images, numbers)
assert seen == list(range(120)) * 2
""")  # fmt: skip

    about, found = written(training), profiles.read(training)
    assert sum(about["shares"].values()) == pytest.approx(1, abs=1e-6)
    assert about["shares"]["wait"] > 0.5
    assert all(about["shares"][part] > 0 for part in ("forward", "backward", "optimizer"))
    assert (about["steps"], about["kind"], about["precision"], about["batch_size"]) == (6, "cpu", "float32", 4)
    assert about["step_ms"] >= 40
    assert about["loader"] == {"kind": "DataLoader", "workers": 0, "pin_memory": False, "batch_size": 4}
    assert {one["step"] for one in about["timeline"]} == set(range(6))
    assert len(about["operations"]) <= 60
    assert not any("DataLoader" in one["name"] for one in about["operations"])
    with gzip.open(work.run_dir(training.job).outputs / "profile" / "trace.json.gz") as file:
        assert json.load(file)["traceEvents"]
    assert found.own
    assert found.advice[0].code == "no_workers"
    assert "num_workers=0" in found.advice[0].text


@pytest.mark.long
def test_sdk_profile_of_a_loop_of_any_form_takes_named_parts(training):
    run(training, LOOP.format(sleep=0) + """
with profile(steps=3, skip=1) as profiling:
    for images, numbers in loader:
        with profiling.part("augment"):
            time.sleep(0.01)
        with torch.autocast("cpu", torch.bfloat16), profiling.part("forward"):
            loss = model(images).sum()
            with profiling.part("backward"):
                loss.backward()
        seen += numbers.tolist()
        profiling.step()
assert len(seen) == 120
""")  # fmt: skip

    about, found = written(training), profiles.read(training)
    assert about["named"]["augment"] > 0.4
    assert about["shares"]["other"] >= about["named"]["augment"]
    assert about["known"] == ["wait", "forward", "backward"]  # torch tells of a DataLoader
    assert about["precision"] == "bfloat16"
    assert [part for part, _words, _share in found.shares] == ["wait", "forward", "backward", "other"]
    assert [str(words) for words in found.untold] == ["optimizer"]
    assert found.named[0][0] == "augment"


def test_sdk_profile_without_torch_knows_waiting_and_says_no_more(training):
    said = run(training, """
import sys, time
from aip import profile
def numbers():
    for number in range(50):
        time.sleep(0.004)
        yield number
seen = []
for number in profile(numbers(), steps=5, skip=3):
    seen.append(number)
    time.sleep(0.001)
assert seen == list(range(50))
assert "torch" not in sys.modules
""")  # fmt: skip

    about, found = written(training), profiles.read(training)
    assert said.count("profile: ") == 1
    assert about["known"] == ["wait"]
    assert 0.5 < about["shares"]["wait"] < 0.95
    assert about["shares"]["wait"] + about["shares"]["other"] == pytest.approx(1)
    assert (about["operations"], about["profiled_step_ms"], about["torch"]) == ([], None, "")
    assert found.advice[0].code == "waits"
    assert "num_workers" in found.advice[0].text
    assert not (work.run_dir(training.job).outputs / "profile" / "trace.json.gz").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "broken",
    [
        "torch.profiler.profile.start = fail",
        "torch.profiler.profile.stop = fail",
        "torch.profiler.profile.key_averages = fail",
        "torch.profiler.record_function = fail",
        "import pathlib; pathlib.Path.mkdir = fail",
    ],
)
def test_sdk_profile_that_fails_is_one_line_and_the_loop_goes_on(training, broken):
    said = run(training, LOOP.format(sleep=0) + f"""
def fail(*_, **__): raise RuntimeError("no such card")
{broken}
for images, numbers in profile(loader, steps=3, skip=1):
    seen += numbers.tolist()
    learn(images, numbers)
assert seen == list(range(120))
""")  # fmt: skip

    assert said == "profile: none was taken, RuntimeError: no such card\n"
    assert not (work.run_dir(training.job).outputs / "profile" / "profile.json").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("hindrance", "line"),
    [
        ("profile_facts.MAX_TRACE_BYTES = 10", ""),
        ("torch.profiler.profile.export_chrome_trace = fail", "profile: the trace was not kept, RuntimeError: full\n"),
    ],
)
def test_sdk_profile_without_its_trace_is_kept(training, hindrance, line):
    said = run(training, LOOP.format(sleep=0) + f"""
from aip import profile_facts
def fail(*_, **__): raise RuntimeError("full")
{hindrance}
for images, numbers in profile(loader, steps=3, skip=1):
    learn(images, numbers)
""")  # fmt: skip

    assert said.startswith(line + "profile: ")
    assert written(training)["steps"] == 3
    assert [path.name for path in (work.run_dir(training.job).outputs / "profile").iterdir()] == ["profile.json"]


@pytest.mark.long
def test_sdk_profile_leaves_another_profiler_alone(training):
    said = run(training, LOOP.format(sleep=0) + """
with torch.profiler.profile() as own:
    for images, numbers in profile(loader, steps=3, skip=1):
        learn(images, numbers)
assert own.key_averages()
""")  # fmt: skip

    assert said == "profile: none was taken, RuntimeError: another profiler of torch is at work\n"


@pytest.mark.long
def test_sdk_profile_goes_on_in_the_next_epoch_and_nests_harmlessly(training):
    run(training, LOOP.format(sleep=0) + """
few = DataLoader(Slow(), batch_size=24)
for epoch in range(4):
    for images, numbers in profile(few, steps=7, skip=2):
        for own, _numbers in profile(few):
            assert len(own) == 24
        learn(images, numbers)
        seen += numbers.tolist()
assert seen == list(range(120)) * 4
assert len(profile(few)) == 5 and profile(few).batch_size == 24
""")  # fmt: skip

    # 2 skipped, 7 as they are, and of the second epoch the last one watched
    assert written(training)["steps"] == 1


@pytest.mark.long
def test_sdk_profile_asks_odd_loaders_nothing_that_ends_the_loop(training):
    run(training, LOOP.format(sleep=0) + """
class Odd:
    def __getattr__(self, name): raise RuntimeError(name)
    def __iter__(self): return iter(range(40))
class Half(DataLoader):
    batch_size = property(lambda self: 1 / 0, lambda self, given: None)
assert list(profile(Odd(), steps=2, skip=1)) == list(range(40))
from aip import loop_profile
assert loop_profile._about(Half(Slow())) == {"kind": "Half"}
""")  # fmt: skip

    assert written(training)["loader"] == {"kind": "Odd"}


@pytest.mark.long
def test_sdk_profile_lets_errors_of_loader_and_loop_through(training):
    said = run(training, LOOP.format(sleep=0) + """
def ends():
    yield from loader
    raise KeyError("no such file")
for steps in (3, 3):
    try:
        for images, numbers in profile(ends(), steps=3, skip=0):
            learn(images, numbers)
            seen += numbers.tolist()
            if len(seen) == 20:
                raise ValueError("diverged")
    except (KeyError, ValueError) as error:
        print(repr(error))
assert seen == list(range(20)) + list(range(120))
""")  # fmt: skip

    assert [line for line in said.splitlines() if not line.startswith("profile: ")] == [
        "ValueError('diverged')", "KeyError('no such file')",
    ]  # fmt: skip
    assert written(training)["steps"] == 1  # the fifth was cut short


@pytest.mark.long
def test_sdk_profile_without_torch_takes_the_steps_there_are(training):
    run(training, "from aip import profile\nassert list(profile(range(9), skip=2)) == list(range(9))")

    assert (written(training)["steps"], written(training)["known"]) == (7, ["wait"])


@pytest.mark.long
def test_sdk_profile_ends_when_it_watched_for_long_enough(training):
    run(training, LOOP.format(sleep=0) + """
from aip import step_recorder
step_recorder.LONGEST_S = 0
for images, numbers in profile(loader, steps=5, skip=1):
    learn(images, numbers)
    seen += numbers.tolist()
assert seen == list(range(120))
""")  # fmt: skip

    assert written(training)["steps"] == 1


@pytest.mark.long
def test_sdk_profile_outlives_a_log_that_is_gone(training):
    run(training, LOOP.format(sleep=0) + """
import os, sys
for images, numbers in profile(loader, steps=5, skip=1):
    learn(images, numbers)
    seen += numbers.tolist()
    if len(seen) == 36:
        sys.stdout.close()
assert seen == list(range(120))
sys.stdout = open(os.devnull, "w")
""")  # fmt: skip

    assert written(training)["steps"] == 5


@pytest.mark.long
def test_sdk_profile_says_when_a_loop_was_too_short(training):
    said = run(training, "from aip import profile\nassert list(profile(range(4), steps=5)) == [0, 1, 2, 3]")

    assert said == (
        "profile: none was taken, the loop ended before it had seen enough steps; lower `skip` or `steps`\n"
    )


@pytest.mark.long
def test_sdk_profile_is_taken_by_the_first_rank_alone_and_only_prints_outside_a_job(training):
    short = "from aip import profile\nassert list(profile(range(40))) == list(range(40))"

    assert run(training, short, RANK="1") == ""
    assert run(training, short, AIP_METRICS_FILE="").startswith("profile: ")
    assert not (work.run_dir(training.job).outputs / "profile").exists()
