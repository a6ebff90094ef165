"""The fork server as `up` and `join` see it: start it, ask it for roles, replace it after an upgrade.

Protocol (one SOCK_SEQPACKET pair per server, JSON messages): the server sends {"stage": …} while it starts and
{"ready": seconds} once. A request is {"id", "argv", "env", "orphan_signal", "parent"} with the descriptor for the
role's output and, for web servers, the listening socket. The forked process itself answers {"id", "pid"}; the server
answers {"id", "error"} when it refuses. A request with {"spare": true} makes a second server, a fork of the first, that
serves the channel whose end comes with it; {"output": true} gives it its output when it takes over.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aiplatform.cli import children
from aiplatform.cli.children import Child
from aiplatform.lib import parenthood

MESSAGE_BYTES = 256 * 1024
FORK_TIMEOUT_S = 15.0
SPARE_AGAIN_S = 1.0
PROGRAM = "aiplatform.cli.fork_server"
#: The interpreter's command line has room for the command line that a forked role shows.
TITLE_ROOM = "." * 1024


class ForkServerLost(Exception):
    """The fork server ended before it answered; another one will be there soon."""


class ForkRefused(Exception):
    """The fork server may not fork any more; the message says why."""


_open: set[asyncio.Future[int]] = set()
"""Requests to all fork servers that were sent and not answered yet. During a reload there are two servers."""


def is_forking() -> bool:
    """Whether a process may just be changing parents."""
    return bool(_open)


class ForkServer:
    """One fork server process, its spare, and the requests it has not answered yet.

    The spare is a fork of the server that does nothing. It takes over when the server ends, so that roles need not
    wait until the platform is imported again.
    """

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.stage = "starting"
        self._child: Child | None = None
        self._control: socket.socket | None = None
        self._replies: dict[int, asyncio.Future[int]] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self._numbers = itertools.count(1)
        self._spare: tuple[socket.socket, Child] | None = None
        self._spare_task: asyncio.Task[None] | None = None
        self._closed = False

    def start(self, environment: Mapping[str, str], output: int) -> Child:
        """Start the process, or let the spare take over; `ready` is set when it can fork."""
        if child := self._promote_spare(output):
            return child
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            self._child = children.spawn(
                [sys.executable, "-m", PROGRAM, str(theirs.fileno()), TITLE_ROOM],
                environment=environment,
                output=output,
                orphan_signal=signal.SIGTERM,
                pass_fds=[theirs.fileno()],
            )
        self.stage = "starting"
        self._listen(ours)
        return self._child

    def close(self) -> None:
        """End the spare and make none any more; `lost` follows for the server itself."""
        self._closed = True
        if self._spare_task is not None:
            self._spare_task.cancel()
            self._spare_task = None
        if self._spare is not None:
            control, child = self._spare
            self._spare = None
            control.close()
            child.kill()

    def lost(self) -> None:
        """Fail open requests after the process has ended for good or is about to be replaced."""
        self.ready.clear()
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control)
            # Roles that have answered run already. One that has not answered yet cannot do so now, and ends.
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RD)
            self._receive()
            self._control.close()
            self._control = None
        futures: list[asyncio.Future[Any]] = [*self._replies.values(), *self._waiting]
        for future in futures:
            if not future.done():
                future.set_exception(ForkServerLost())
        self._replies.clear()

    async def fork(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        output: int,
        orphan_signal: signal.Signals,
        listener: int | None = None,
    ) -> Child:
        """Have `argv`, a command line of this Python, run in a fork of the server.

        The process becomes a child of the caller, not of the server: it outlives the server, and ends with the caller.

        Args:
            environment: variables on top of those that the server was started with.
            listener: a listening socket; the process finds its descriptor in `AIP_LISTENER_FD`.

        Raises:
            ForkServerLost: the server ended, or did not answer in time, before the process started.
            ForkRefused: the server refused; the message says why.
        """
        descriptors = [output] if listener is None else [output, listener]
        child = await self._request({"argv": list(argv), "env": dict(environment)}, descriptors, orphan_signal)
        self._start_spare()  # the server is warmed up after its first fork
        return child

    async def _request(
        self, what: Mapping[str, object], descriptors: Sequence[int], orphan_signal: signal.Signals
    ) -> Child:
        """Send a request for a fork when the server is ready, and adopt the process."""
        await self._wait_until_ready()
        number, reply = next(self._numbers), asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        _open.add(reply)
        request = {**what, "id": number, "orphan_signal": int(orphan_signal), "parent": os.getpid()}
        parenthood.adopt_orphans(on=True)
        try:
            if self._control is None:
                raise ForkServerLost
            try:
                socket.send_fds(self._control, [json.dumps(request).encode()], descriptors)
            except OSError as exc:
                raise ForkServerLost from exc
            return children.adopt(await asyncio.wait_for(reply, FORK_TIMEOUT_S))
        except TimeoutError:
            if self._child is not None:
                self._child.kill()  # stopped or hanging: the spare takes over
            raise ForkServerLost from None
        finally:
            self._replies.pop(number, None)
            _open.discard(reply)
            if not is_forking():
                parenthood.adopt_orphans(on=False)
                children.reap_strays()

    async def _wait_until_ready(self) -> None:
        """Wait for `ready`.

        Raises:
            ForkServerLost: the server ended meanwhile; it may have been replaced by another one.
        """
        if self.ready.is_set():
            return
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)

    def _listen(self, control: socket.socket) -> None:
        self._control = control
        asyncio.get_running_loop().add_reader(control, self._receive)

    def _start_spare(self) -> None:
        if self._spare_task is None and not self._closed:
            self._spare_task = asyncio.create_task(self._keep_spare())

    async def _keep_spare(self) -> None:
        """Have a spare at any time."""
        while True:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.setblocking(False)
            child = None
            try:
                with theirs, Path(os.devnull).open("wb") as nowhere:
                    child = await self._request({"spare": True}, [nowhere.fileno(), theirs.fileno()], signal.SIGTERM)
                if self._spare_task is not asyncio.current_task():
                    child.kill()  # cancelled just as the answer came, which `wait_for` does not report
                    ours.close()
                    return
                self._spare = ours, child
                await child.wait()
                self._spare = None
            except (ForkServerLost, ForkRefused):
                await self.ready.wait()
            finally:
                if child is None or child.returncode is not None:
                    ours.close()
            await asyncio.sleep(SPARE_AGAIN_S)

    def _promote_spare(self, output: int) -> Child | None:
        """Make the spare the server, if there is one."""
        spare, self._spare = self._spare, None
        if self._spare_task is not None:
            self._spare_task.cancel()
            self._spare_task = None
        if spare is None:
            return None
        control, child = spare
        try:
            socket.send_fds(control, [json.dumps({"output": True}).encode()], [output])
        except OSError:  # it has ended, too
            control.close()
            return None
        self._child = child
        self._listen(control)
        self._set_ready()
        self._start_spare()
        return child

    def _set_ready(self) -> None:
        self.stage = "ready"
        self.ready.set()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    def _receive(self) -> None:
        assert self._control is not None
        while True:
            try:
                data = self._control.recv(MESSAGE_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:  # the server ended; `lost` follows when its exit is seen
                asyncio.get_running_loop().remove_reader(self._control)
                return
            self._handle(json.loads(data))

    def _handle(self, message: dict[str, object]) -> None:
        if "stage" in message:
            self.stage = str(message["stage"])
        elif "ready" in message:
            self._set_ready()
        else:
            reply = self._replies.get(int(str(message["id"])))
            if reply is None or reply.done():
                if "pid" in message:  # the request was cancelled; the role must not run with its successor
                    children.kill_stray(int(str(message["pid"])))
            elif "pid" in message:
                reply.set_result(int(str(message["pid"])))
            else:
                reply.set_exception(ForkRefused(str(message["error"])))
