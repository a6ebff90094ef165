"""What running as a job costs a training: `python -m tests.bench presets --overhead`.

Each preset is trained as a job of a real platform (scheduler, agent, supervisor, sandbox) and, alternating with it, in
a bare loop in a process of its own: the same code for model, data, augmentation, optimizer and learning rate, the same
images, batch size and threads, but no reports, no control commands, no checks of the loss, no
checkpoints, no scores and no estimate of the time left. Steps per second count from the first step to the last one.
The ratio of every round is printed, by wall time and by CPU time of the training process: the second one says more on
a machine that others use at the same time. The start of a job counts from the supervisor's start to the end of the
first step, on images that are cached.

The costs of logging, control commands and checkpoints and the parts of the start are measured within one more process
of the preset whose functions are timed; telemetry is the CPU time of the platform's processes while a job trains.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiplatform
from tests.presets import versions
from tests.presets.jobs import Job as PresetProcess
from tests.running import Platform, environment, platform, wait_for
from workers.supervisor import processes, records

if TYPE_CHECKING:
    from accounts.models import User
    from datasets.models import DatasetVersion

HERE = Path(__file__).parent
BARE = Path(aiplatform.__file__).parent / "cli/gpu_report/programs/bare_loop.py"
PARTS = HERE / "timed_preset.py"
TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_S, IDLE_S = 0.2, 20.0
CHECKPOINT_S = 30  # presets write checkpoints no more often than this unless they are asked to
COMMON: dict[str, Any] = {"budget_minutes": 0, "eval_share": 0, "batch_size": 16, "steps": 1_000_000}


@dataclass(frozen=True)
class Case:
    """A preset, the class of its task, and the images that it learns from."""

    task: str
    make: Callable[[Path], Path]
    params: Mapping[str, Any] = field(default_factory=dict)


CASES = {
    "detect": Case("Detection", lambda folder: versions.squares(folder, train=48, val=8)),
    "classify": Case("Classification", lambda folder: versions.shades(folder, train=48, val=8), {"net_width": 8}),
    "segment": Case("Segmentation", lambda folder: versions.outlines(folder, train=48, val=8, size=(96, 64))),
}


@dataclass(frozen=True)
class Rate:
    """Steps, and the wall and CPU seconds that they took."""

    steps: int
    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class Start:
    """Seconds from the supervisor's start to the interpreter's and to the end of the first step, and CPU seconds."""

    spawned_s: float
    first_step_s: float
    cpu_s: float


@dataclass
class Measured:
    """All rounds of one preset."""

    jobs: list[Rate] = field(default_factory=list)
    bare: list[Rate] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    platform: list[dict[str, float]] = field(default_factory=list)  # CPU seconds per second, by process
    parts: dict[str, Any] = field(default_factory=dict)  # what PARTS printed

    def ratios(self, cost: Callable[[Rate], float]) -> list[float]:
        """Steps per second of the job as a share of the bare loop's, for each round."""
        return [
            (job.steps / cost(job)) / (bare.steps / cost(bare)) for job, bare in zip(self.jobs, self.bare, strict=True)
        ]


class Sampler:
    """Reads the CPU time of a job's processes and of the platform's until it is closed."""

    def __init__(self, here: Platform, run: Path) -> None:
        self.here, self.run = here, run
        self.samples: list[tuple[float, dict[str, float]]] = []
        self.learner_began = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def at(self, moment: float, name: str) -> float:
        """CPU seconds of `name` at a time, between two samples in proportion."""
        before = [(when, cpu[name]) for when, cpu in self.samples if when <= moment and name in cpu][-1:]
        after = [(when, cpu[name]) for when, cpu in self.samples if when > moment and name in cpu][:1]
        if not before or not after:
            return (before or after or [(0.0, 0.0)])[0][1]
        (start, low), (end, high) = before[0], after[0]
        return low + (high - low) * (moment - start) / (end - start)

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_S):
            groups = {name: [part.pid] for name, part in self.here.parts.items() if part.pid}
            about = records.read(str(self.run / records.SUPERVISOR)) or {}
            if child := about.get("child"):
                groups["supervisor"] = [about["pid"]]
                groups["training"] = [child["pid"], *processes.descendants(child["pid"])]
            now, uptime_s = time.time(), float(Path("/proc/uptime").read_text().split()[0])
            found = {name: [_stat(pid) for pid in pids] for name, pids in groups.items()}
            self.samples.append((now, {name: sum(cpu for cpu, _began in each) for name, each in found.items()}))
            if began_s := max(found.get("training", [(0.0, 0.0)]))[1]:  # the program computes; the sandbox waits
                self.learner_began = now - uptime_s + began_s


def _stat(pid: int) -> tuple[float, float]:
    """CPU seconds of a process so far, and when it was started, in seconds since the machine's start."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:  # it ended meanwhile
        return 0.0, 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS, int(fields[19]) / TICKS


def main(rounds: int, seconds: float, names: list[str]) -> int:
    """Measure and print; `seconds` of learning in each run."""
    root = Path(tempfile.mkdtemp(prefix="aip-bench-"))
    os.environ.update(environment(root / "data"))
    import django

    django.setup()
    from tests.factories import people
    from workers.core.models import VirtualCluster
    from workers.execution import tickets

    threads, measured = min(2, os.cpu_count() or 1), {name: Measured() for name in names}
    floors: list[tuple[float, float]] = []
    try:
        with platform(root / "data") as here:
            cluster = VirtualCluster.objects.get_or_create(name="default")[0]
            owner = people.user("bench", cluster=cluster)
            bench = Bench(here, root, owner, threads, seconds)
            plans = {name: bench.prepare(name) for name in names}
            idle = bench.idle()
            for _round in range(rounds):
                floors.append(import_torch(threads))
                for name, found in measured.items():
                    bench.measure(plans[name], found)
            for name, found in measured.items():
                found.parts = bench.parts(plans[name])
            tier = tickets.tier()[0]
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(
        f"overhead on {os.cpu_count()} cores, {threads} threads, sandbox tier {tier}, {rounds} rounds of about "
        f"{seconds:g} s; load of the machine {os.getloadavg()[0]:.1f}"
    )
    floor = tuple(statistics.median(column) for column in zip(*floors, strict=True))
    print(f"import torch alone: {floor[0]:.2f} s, {floor[1]:.2f} CPU-s; idle platform: {100 * idle:.1f} % of a core")
    for name, found in measured.items():
        show(name, found, floor)
    return 0


@dataclass(frozen=True)
class Plan:
    """What every round of a preset repeats."""

    name: str
    version: DatasetVersion
    cache: Path
    params: dict[str, Any]


class Bench:
    """Trains presets as jobs of a platform and in processes of its own."""

    def __init__(self, here: Platform, root: Path, owner: User, threads: int, seconds: float) -> None:
        self.here, self.root, self.owner, self.threads, self.seconds = here, root, owner, threads, seconds
        self.runs = 0

    def prepare(self, name: str) -> Plan:
        """Publish the images and cache them by a first job."""
        from workers.core import scratch

        case = CASES[name]
        version = published(case.make(self.root / "made" / name), self.owner)
        cache = scratch.image_cache(self.owner.pk, str(version.pk))
        plan = Plan(name, version, cache, {**COMMON, **case.params})
        self.job(plan)
        return plan

    def idle(self) -> float:
        """CPU seconds per second of the platform without jobs."""
        with contextlib.closing(Sampler(self.here, self.root)) as sampler:
            time.sleep(IDLE_S)
        (start, first), (end, last) = sampler.samples[0], sampler.samples[-1]
        return sum(last[name] - first[name] for name in first if name in last) / (end - start)

    def measure(self, plan: Plan, found: Measured) -> None:
        """One round: a job and the bare loop, in turns which of them goes first."""
        for what in (self._measure_job, self._measure_bare)[:: -1 if len(found.jobs) % 2 else 1]:
            what(plan, found)

    def _measure_job(self, plan: Plan, found: Measured) -> None:
        rate, start, busy = self.job(plan)
        found.jobs.append(rate)
        found.starts.append(start)
        found.platform.append(busy)

    def _measure_bare(self, plan: Plan, found: Measured) -> None:
        found.bare.append(self.bare(plan))

    def job(self, plan: Plan) -> tuple[Rate, Start, dict[str, float]]:
        """Train as a job: steps per second, its start, and what the platform's processes computed beside it."""
        from training.runs import jobs
        from training.runs.drafts import TrainingRequest
        from workers.core.models import Job
        from workers.core.runs import RunDir
        from workers.core.states import FINAL
        from workers.jobs import actions

        request = TrainingRequest(
            name=f"overhead {plan.name}", version=plan.version, preset=plan.name, params=plan.params,
            gpus_per_node=0, cpus=float(self.threads),
        )  # fmt: skip
        job = jobs.submit(user=self.owner, request=request).job
        run = RunDir.for_attempt(job.pk, 1)
        with contextlib.closing(Sampler(self.here, run.path)) as sampler:
            ended = Job.objects.filter(pk=job.pk, state__in=FINAL)
            wait_for(lambda: self._has_learned(run.metrics) or ended.exists(), 300, "the job did not learn", 0.5)
            actions.stop(job)
            wait_for(ended.exists, 60, f"job {job.pk} did not end", 0.5)
        lines = _train_lines(run.metrics)
        if len(lines) < 2:
            sys.exit(f"The {plan.name} job failed:\n{run.log.read_text()[-3000:]}")
        began = float((records.read(str(run.path / records.EXIT)) or {})["started_at"])
        first, last = lines[0], lines[-1]
        wall_s = last["time"] - first["time"]

        def used(name: str) -> float:
            return sampler.at(last["time"], name) - sampler.at(first["time"], name)

        rate = Rate(last["step"] - first["step"], wall_s, used("training"))
        first_cpu_s = sampler.at(first["time"], "training")
        start = Start(sampler.learner_began - began, first["time"] - began, first_cpu_s)
        return rate, start, {name: used(name) / wall_s for name in [*self.here.parts, "supervisor"]}

    def _has_learned(self, metrics: Path) -> bool:
        lines = _train_lines(metrics)
        return len(lines) > 1 and lines[-1]["time"] - lines[0]["time"] >= self.seconds

    def bare(self, plan: Plan) -> Rate:
        """Train in a bare loop."""
        found = self._run(plan, BARE, plan.params)
        return Rate(found["steps"], found["seconds"], found["cpu_seconds"])

    def parts(self, plan: Plan) -> dict[str, Any]:
        """Train as the preset does, with its functions timed, and a checkpoint each second."""
        return dict(self._run(plan, PARTS, {**plan.params, "checkpoint_minutes": 1 / 60}))

    def _run(self, plan: Plan, program: Path, params: dict[str, Any]) -> Any:
        self.runs += 1
        folder = self.root / "runs" / str(self.runs)
        folder.mkdir(parents=True)
        process = PresetProcess(folder, plan.version.path, plan.name, params, threads=self.threads)
        process.env |= {"AIP_CACHE_DIR": str(plan.cache), "PYTHONDONTWRITEBYTECODE": "1"}
        shutil.rmtree(process.code / "presets" / "__pycache__", ignore_errors=True)  # a job has none
        command = [
            sys.executable,
            "-c",
            program.read_text(),
            plan.name,
            CASES[plan.name].task,
            str(self.seconds),
        ]
        done = subprocess.run(command, cwd=process.code, env=process.env, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"The {plan.name} program failed:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return json.loads(done.stdout.splitlines()[-1].removeprefix("result "))


def _train_lines(metrics: Path) -> list[dict[str, Any]]:
    """What a training reported of its learning so far; a line that is being written is left out."""
    with contextlib.suppress(OSError):
        text = metrics.read_text()
        lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
        return [line for line in lines if "train/loss" in line]
    return []


def published(folder: Path, owner: User) -> DatasetVersion:
    """A version of the platform with the images and annotations in a folder of tests.presets.versions."""
    from datasets.formats.neutral import box
    from datasets.formats.writer import StoredImage
    from datasets.services import versions as services
    from tests.factories import datasets

    about = json.loads((folder / "dataset.json").read_text())
    lines = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    shapes: dict[int, list[dict[str, Any]]] = {}
    if about["task"] == "detection":
        for shape in json.loads((folder / "annotations.json").read_text())["annotations"]:
            stored = box(shape["category_id"], *shape["bbox"], id=shape["id"])
            if rings := shape.get("segmentation"):
                stored = replace(stored, kind="polygon", segmentation=rings, area=shape["area"])
            shapes.setdefault(shape["image_id"], []).append(stored.as_dict())

    def rows() -> Iterator[StoredImage]:
        for number, line in enumerate(lines, start=1):
            size = (folder / "images" / line["path"]).stat().st_size
            yield StoredImage(
                line["path"], line["sha256"], line["width"], line["height"], size, number, line["split"],
                line["label"], shapes.get(number, []),
            )  # fmt: skip

    def place(target: Path) -> None:
        shutil.copytree(folder / "images", target, dirs_exist_ok=True)

    version = services.allocate(datasets.dataset(owner, folder.name), by=owner, note="made for a bench")
    return services.publish(version, rows, task=about["task"], classes=about["classes"], place_images=place)


def import_torch(threads: int) -> tuple[float, float]:
    """Wall and CPU seconds of a process that imports torch and ends: no training starts faster."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", "import torch"], env={**os.environ, "OMP_NUM_THREADS": str(threads)}
    )
    _pid, _status, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return time.monotonic() - began, used.ru_utime + used.ru_stime


def show(name: str, found: Measured, floor: tuple[float, ...]) -> None:
    """Print the table of one preset."""
    wall, cpu = (found.ratios(cost) for cost in (lambda rate: rate.wall_s, lambda rate: rate.cpu_s))
    steps, median = statistics.median(rate.steps for rate in found.jobs), statistics.median
    per_s = median(rate.steps / rate.wall_s for rate in found.jobs)
    print(f"{name}: {per_s:.1f} steps/s as a job; about {steps:.0f} steps a round")
    print(f"  {name}, steps/s of the bare loop: {median(wall):.3f}  per wall second; rounds {_listed(wall)}")
    print(f"  {name}, steps/CPU-s of the bare loop: {median(cpu):.3f}  per CPU second; rounds {_listed(cpu)}")
    begun = [start.first_step_s for start in found.starts]
    start_cpu_s = median(start.cpu_s for start in found.starts)
    print(
        f"  {name}, start to first step: {median(begun):.2f} s  rounds {_listed(begun)}; {start_cpu_s:.2f} CPU-s, "
        f"{start_cpu_s - floor[1]:.2f} more than importing torch"
    )
    print(f"      {'supervisor to interpreter':<26} {median(start.spawned_s for start in found.starts):6.2f} s")
    before = 0.0, 0.0
    for label, wall_s, cpu_s in found.parts["start"]:
        print(f"      {label:<26} {wall_s - before[0]:6.2f} s  {cpu_s - before[1]:6.2f} CPU-s")
        before = wall_s, cpu_s
    seconds, count = found.parts["seconds"], found.parts["steps"]
    seconds -= found.parts["costs"].get("checkpoints", [0, 0.0, 0.0])[1]
    print(f"  overheads within the {name} process, of {1000 * seconds / count:.1f} ms a step")
    for label, (calls, wall_s, cpu_s) in found.parts["costs"].items():
        if label != "checkpoints":
            share = f"{100 * wall_s / seconds:6.2f} % of the time, {1e6 * cpu_s / calls:6.0f} CPU-µs each"
            print(f"      {label:<36} {share} ({calls:.0f})")
    if each := found.parts["checkpoints"]:
        share = 100 * median(each) / CHECKPOINT_S
        words = f"{share:6.2f} % of the time at one in {CHECKPOINT_S} s, {median(each):.3f} s each"
        print(f"      {'checkpoints':<36} {words} ({len(each)})")
    busy = {part: 100 * median(round_[part] for round_ in found.platform) for part in found.platform[0]}
    names = ", ".join(f"{part} {share:.1f}" for part, share in sorted(busy.items(), key=lambda item: -item[1]))
    print(f"  telemetry and the rest of the platform beside {name}: {sum(busy.values()):.1f} % of a core ({names})")


def _listed(values: list[float]) -> str:
    return " ".join(f"{value:.3f}" for value in values)
