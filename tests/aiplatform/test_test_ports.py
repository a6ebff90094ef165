"""Test processes that run side by side are given different ports."""

from __future__ import annotations

import multiprocessing
import socket

import pytest

from tests import ports

pytestmark = pytest.mark.sockets("finds ports that nobody listens on")


def _blocks(there, end) -> None:
    there.put((ports.own().first, [ports.own().free() for _ in range(3)]))
    end.wait(60)


def test_processes_side_by_side_hold_blocks_of_their_own():
    fork = multiprocessing.get_context("fork")
    mine = ports.own().first  # before the others, whose blocks are free again when they have ended
    there, end = fork.Queue(), fork.Event()
    others = [fork.Process(target=_blocks, args=(there, end)) for _ in range(3)]
    for process in others:
        process.start()
    found = [there.get(timeout=60) for _ in others]
    end.set()
    for process in others:
        process.join()

    firsts = {mine, *(first for first, _given in found)}
    assert len(firsts) == 4
    assert len({port for _first, given in found for port in given}) == 9


def test_free_port_is_not_one_that_listens_nor_one_given_before():
    own = ports.own()
    given = own.free()
    with socket.create_server(("127.0.0.1", given + 2)):
        later = own.free()

    assert later not in {given, given + 1, given + 2}


def test_blocks_end_below_the_ports_of_connections():
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        assert int(file.read().split()[0]) >= ports.END or pytest.skip("this machine gives connections lower ports")
