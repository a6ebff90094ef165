"""Spans of a profile: every moment belongs to one part, and a card's work to the part that gave it out."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from training.presets.profile_spans import Span, laid, read_events, shares


@dataclass
class Event:
    """An event as torch's profiler notes it."""

    own_name: str
    begin: int
    took: int
    number: int = 0
    sequence: int = -1
    forward_thread: int = 0
    card: bool = False
    launched_by: int = 0
    range: bool = False
    kinds: list[str] = field(default_factory=list)

    def name(self):
        return self.own_name

    def start_ns(self):
        return self.begin

    def duration_ns(self):
        return self.took

    def device_type(self):
        return "DeviceType.CUDA" if self.card else "DeviceType.CPU"

    def is_user_annotation(self):
        return self.range

    def correlation_id(self):
        return self.number

    def linked_correlation_id(self):
        return self.launched_by

    def sequence_nr(self):
        return self.sequence

    def scope(self):
        return 7 if self.range else 0

    def start_thread_id(self):
        return 1

    def fwd_thread_id(self):
        return self.forward_thread

    def dtypes(self):
        return self.kinds


def test_spans_of_the_highest_rank_hold_and_what_lies_inside_stands_above():
    pieces = laid(
        [(0, 100), (100, 200)],
        [Span(0, 30, "wait"), Span(20, 90, "forward", 1), Span(40, 60, "loss"), Span(90, 130, "x"), Span(50, 55, "y")],
    )

    assert [[piece[:3] for piece in own] for own in pieces] == [
        [(0, 30, "wait"), (30, 40, "forward"), (40, 50, "loss"), (50, 55, "y"), (55, 60, "loss"),
         (60, 90, "forward"), (90, 100, "x")],
        [(100, 130, "x")],
    ]  # fmt: skip
    assert shares([(0, 100), (100, 200)], pieces) == pytest.approx(
        {"wait": 0.15, "forward": 0.2, "loss": 0.075, "y": 0.025, "x": 0.2, "other": 0.35}
    )
    assert shares([], []) == {"other": 1.0}


RECORD = [
    Event("aip::profiled step", 0, 100, 1, range=True),
    Event("aip::wait", 0, 20, 2, range=True),
    Event("aten::to", 22, 2, 3, sequence=0),  # before the first layer, with its number
    Event("aten::addmm", 25, 5, 4, sequence=0, kinds=["c10::BFloat16"]),
    Event("aten::relu", 34, 1, 5, sequence=1),
    Event("aten::argmax", 36, 2, 6, sequence=2),  # nothing learns by it
    Event("autograd::engine::evaluate_function: ReluBackward0", 40, 5, 7, sequence=1, forward_thread=1),
    Event("aten::addmm", 41, 3, 8, sequence=7),
    Event("autograd::engine::evaluate_function: AddmmBackward0", 46, 4, 9, sequence=0, forward_thread=1),
    Event("Optimizer.step#SGD.step", 52, 6, 10, range=True),
]


def test_record_of_cores_tells_forward_backward_and_optimizer_by_what_torch_notes():
    found = read_events(RECORD)

    assert found.steps == [(0, 100)]
    assert found.precision == "bfloat16"
    assert shares(found.steps, laid(found.steps, found.spans)) == pytest.approx(
        {"wait": 0.2, "forward": 0.1, "backward": 0.1, "optimizer": 0.06, "other": 0.54}
    )


def test_record_knows_waiting_by_torchs_own_range_around_a_loader():
    own = Event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 20, 2, range=True)

    found = read_events([RECORD[0], own, *RECORD[2:]])

    assert shares(found.steps, laid(found.steps, found.spans))["wait"] == pytest.approx(0.2)


def test_record_of_a_card_gives_its_work_to_the_part_that_gave_it_out():
    work = [
        Event("cudaLaunchKernel", 80, 1, 4, launched_by=4),  # numbers of the driver's calls are its own
        Event("memcpy", 23, 3, card=True, launched_by=3),  # given out in no part
        Event("gemm", 30, 35, card=True, launched_by=4),
        Event("relu", 65, 25, card=True, launched_by=7),
        Event("unknown", 90, 5, card=True, launched_by=77),
        Event("Optimizer.step#SGD.step", 0, 100, card=True, range=True),
    ]

    found = read_events(RECORD + work)

    assert shares(found.steps, laid(found.steps, found.spans)) == pytest.approx(
        {"wait": 0.2, "forward": 0.4, "backward": 0.25, "other": 0.15}
    )


def test_layers_computed_again_within_backward_stay_backward():
    again = Event("aten::addmm", 47, 2, 20, sequence=30)
    answer = Event("autograd::engine::evaluate_function: AddmmBackward0", 49, 1, 21, sequence=30, forward_thread=1)

    found = read_events([*RECORD, again, answer])

    assert shares(found.steps, laid(found.steps, found.spans))["backward"] == pytest.approx(0.1)
