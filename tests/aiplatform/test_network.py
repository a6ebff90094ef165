"""Tests have no network of their own accord, and never another host's."""

from __future__ import annotations

import socket
import time

import pytest

from tests import covered, network


@pytest.fixture
def refused():
    """What was refused; taken out of the books, so that this test may go on."""
    yield network._state["refused"]
    network._state["refused"].clear()


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True), ("::1", True), ("localhost", True), ("/run/x.sock", True), (("127.0.0.1", 80), True),
        ("0.0.0.0", True), ("10.0.0.5", False), ("example.org", False), (("8.8.8.8", 53), False),
    ],
)  # fmt: skip
def test_is_here_knows_this_machine_from_others(host, here):
    assert network.is_here(host) is here


def test_network_guard_lets_a_unit_test_without_the_mark_reach_nothing(refused):
    with socket.socket() as probe, pytest.raises(network.Refused):
        probe.connect(("127.0.0.1", 9))

    assert refused == ["connect ('127.0.0.1', 9)"]


@pytest.mark.sockets("tries what is let through")
def test_network_guard_lets_a_marked_test_reach_only_this_machine(refused):
    with socket.socket() as here:
        here.bind(("127.0.0.1", 0))
    begun = time.monotonic()
    with socket.socket() as there, pytest.raises(network.Refused):
        there.connect(("192.0.2.1", 80))
    with pytest.raises(network.Refused):
        socket.getaddrinfo("example.org", 443)

    assert refused == ["connect ('192.0.2.1', 80)", "getaddrinfo 'example.org'"]
    assert time.monotonic() - begun < 5
    assert socket.getaddrinfo("10.0.0.1", 80)  # a number asks nobody


def test_coverage_figures_add_up_lines_and_branches_by_app():
    half = {"covered_lines": 1, "num_statements": 2, "covered_branches": 0, "num_branches": 1}
    files = {"workers/a.py": {"summary": half}, "workers/b.py": {"summary": half}, "accounts/c.py": {"summary": half}}

    lines = covered.figures(files)

    assert [line.split()[0] for line in lines] == ["accounts", "workers", "total"]
    assert lines[-1].split() == ["total", "lines", "50.0", "%", "of", "6", "branches", "0.0", "%", "of", "3"]
