"""Workers that are killed at an exact moment: a process of the platform's own code that ends itself by SIGKILL there.

What the kernel does to a process that somebody else kills it does to one that kills itself: nothing is finished,
nothing is rolled back by hand, no `finally` runs.
"""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.journeys.up import ROOT, Up

#: Moment → where it is (`module:attribute`), and whether the act is done first.
IMPORTING = {
    "an image is checked": ("datasets.services.checking:_checked", "after"),
    "the report is written": ("datasets.services.imports:_go_on", "before"),
    "the version has its number": ("datasets.services.committing:versions.publish", "before"),
    "the version is there": ("datasets.services.committing:versions.publish", "after"),
    "the import is done": ("datasets.services.imports:clean", "before"),
}
READING = ("datasets.services.checking:detect.detect", "before")
SUBMITTING = {
    "nothing is submitted": ("training.runs.planned:jobs.submit", "before"),
    "the training is made": ("training.runs.planned:jobs.submit", "after"),
    "the plan names its training": ("training.models:PlannedTraining.save", "after"),
    "all is committed and nobody told": ("aiplatform.lib.nudging:attempt", "before"),
}
PROGRAM = """
import importlib, os, signal, sys
import django
django.setup()
place, when, *acts = sys.argv[1:]

def found(path):
    module, _, names = path.partition(":")
    *inner, name = names.split(".")
    holder = importlib.import_module(module)
    for part in inner:
        holder = getattr(holder, part)
    return holder, name

def patch():
    holder, name = found(place)
    real = getattr(holder, name)
    def dies(*args, **more):
        if when == "after":
            real(*args, **more)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(holder, name, dies)

for number, act in enumerate(acts, 1):
    path, _, row = act.rpartition(":")
    if number == len(acts):
        patch()
    holder, name = found(path)
    getattr(holder, name)(int(row))
"""


def start(up: Up, moment: tuple[str, str], *acts: tuple[str, int]) -> subprocess.Popen[str]:
    """Do these acts (`module:function` and the row it is for) in a process that dies in the last, at this moment."""
    argv = [sys.executable, "-c", PROGRAM, *moment, *(f"{act}:{row}" for act, row in acts)]
    env = up.environment | {"DJANGO_SETTINGS_MODULE": "aiplatform.settings"}
    return subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def died(process: subprocess.Popen[str], seconds: float = 240) -> None:
    """Wait for a death of `start`; it must be that one."""
    said, _ = process.communicate(timeout=seconds)
    assert process.returncode == -signal.SIGKILL, (process.args, said)
