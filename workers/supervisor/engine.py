"""A container engine's API over its unix socket: docker's, which podman answers too.

https://docs.docker.com/engine/api/v1.41/ . Paths carry no version: each engine then speaks its own newest, and what
is used here is the same in all of them since 1.41 (docker 20.10, podman 4).
"""

import http.client
import json
import socket
import urllib.parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

ANSWER_S = 30.0  # an engine under load takes seconds to create a container


class Refused(OSError):
    """The engine refused a request. `status` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Unanswered(OSError):
    """No process answers at the socket, or it is no container engine."""


class Engine:
    """One engine, by the path of its socket. A connection per question: questions are few."""

    def __init__(self, path: str, answer_s: float = ANSWER_S) -> None:
        self.path, self.answer_s = path, answer_s

    def send(self, method: str, path: str, body: object = None, **query: str) -> "Any":
        """Send one request; return the JSON of the response, None where it has none.

        Raises:
            Refused: the engine says no, in its words.
            Unanswered: it says nothing, or nothing that can be understood.
        """
        if query:
            path = f"{path}?{urllib.parse.urlencode(query)}"
        door = _UnixConnection(self.path, self.answer_s)
        try:
            content = None if body is None else json.dumps(body)
            door.request(method, path, content, {"Content-Type": "application/json"} if content else {})
            answer = door.getresponse()
            text, status = answer.read(), answer.status
        except (OSError, http.client.HTTPException) as exc:
            raise Unanswered(f"no container engine answers at {self.path}: {exc or type(exc).__name__}") from exc
        finally:
            door.close()
        try:
            value = json.loads(text) if text.strip() else None
        except ValueError:
            value = None  # "OK" of a ping is no JSON, and an error's words stand in `text`
        if status >= 400:
            error = value.get("message") if isinstance(value, dict) else None
            raise Refused(status, str(error or text[:300].decode(errors="replace") or f"HTTP {status}"))
        return value

    def load(self, length: "int | None", archive: "Iterable[bytes]") -> str:
        """Take images out of an archive as `docker save` writes it; return what the engine says, for errors.

        Args:
            length: of the archive in bytes; None where nobody knows it before its end.

        Raises:
            Refused, Unanswered: see `send`.
        """
        return self._send_archive("POST", "/images/load?quiet=1", archive, length)

    def upload(self, name: str, archive: "Iterable[bytes]") -> None:
        """Unpack an archive at the root of a container, whether it runs or not.

        Raises:
            Refused, Unanswered: see `send`.
        """
        self._send_archive("PUT", f"/containers/{name}/archive?path=/", archive, None)

    def commit(self, name: str, image: str, config: "dict[str, Any]") -> None:
        """Make an image of a container, called `image`, with this configuration. Mounts are no part of it."""
        repo, _colon, tag = image.rpartition(":")
        self.send("POST", "/commit", config, container=name, repo=repo, tag=tag, pause="false")

    def export(self, name: str, piece_bytes: int = 1 << 20) -> "Iterator[bytes]":
        """Yield an image as an archive that `load` takes.

        Raises:
            Refused, Unanswered: see `send`; also when it breaks off.
        """
        door = _UnixConnection(self.path, self.answer_s)
        try:
            door.request("GET", f"/images/{name}/get")
            answer = door.getresponse()
            if answer.status >= 400:
                raise Refused(answer.status, answer.read(65536).decode(errors="replace")[:300])
            while piece := answer.read(piece_bytes):
                yield piece
        except http.client.HTTPException as exc:
            raise Unanswered(f"the container engine at {self.path} broke off: {exc or type(exc).__name__}") from exc
        finally:
            door.close()

    def _send_archive(self, method: str, path: str, archive: "Iterable[bytes]", length: "int | None") -> str:
        """Send an archive; return the engine's response."""
        door = _UnixConnection(self.path, self.answer_s)
        try:
            headers = {} if length is None else {"Content-Length": str(length)}
            door.request(method, path, archive, {"Content-Type": "application/x-tar"} | headers)
            answer = door.getresponse()
            output, status = answer.read(65536).decode(errors="replace"), answer.status
        except (OSError, http.client.HTTPException) as exc:
            raise Unanswered(f"no container engine answers at {self.path}: {exc or type(exc).__name__}") from exc
        finally:
            door.close()
        if status >= 400:
            raise Refused(status, output[:300])
        return output

    def folder(self) -> str:
        """Where it keeps images and containers, "" where it does not say; podman answers by docker's word."""
        return str((self.send("GET", "/info") or {}).get("DockerRootDir") or "")

    def image(self, name: str) -> "dict[str, Any]":
        """Look at an image: Id, Size, Config, Architecture.

        Raises:
            Refused: there is none of this name.
        """
        return dict(self.send("GET", f"/images/{name}/json"))

    def remove_image(self, name: str) -> None:
        """Remove a name of an image. A missing one is no error, and one in use stays."""
        self._unless((404, 409), "DELETE", f"/images/{name}")

    def images(self) -> "list[dict[str, Any]]":
        """Every image with a name, by `RepoTags`."""
        return list(self.send("GET", "/images/json") or [])

    def create(self, name: str, described: "dict[str, Any]") -> None:
        """Make a container without starting it; a name that is taken is refused with 409."""
        self.send("POST", "/containers/create", described, name=name)

    def start(self, name: str) -> None:
        self.send("POST", f"/containers/{name}/start")

    def state(self, name: str) -> "dict[str, Any]":
        """What it does now: Running, Paused, Pid of its first process on this machine, ExitCode, OOMKilled."""
        return dict(self.send("GET", f"/containers/{name}/json")["State"])

    def kill(self, name: str, signal_name: str) -> None:
        """Signal its first process; KILL ends everything in it. One that does not run any more is no error."""
        self._unless((404, 409), "POST", f"/containers/{name}/kill", signal=signal_name)

    def pause(self, name: str) -> None:
        self.send("POST", f"/containers/{name}/pause")

    def unpause(self, name: str) -> None:
        self.send("POST", f"/containers/{name}/unpause")

    def remove(self, name: str) -> None:
        """Kill and remove it at once, with what it wrote outside of its mounts. A missing one is no error.

        Raises:
            Refused: also where somebody else's removal is under way: only what is gone is gone.
        """
        self._unless((404,), "DELETE", f"/containers/{name}", force="true", v="true")

    def listen(self, name: str) -> socket.socket:
        """A connection that stays open as long as this engine lives; its events of the container stay unread.

        Raises:
            OSError: nobody answers.
        """
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(self.answer_s)
        query = urllib.parse.urlencode({"filters": json.dumps({"container": [name]})})
        try:
            line.connect(self.path)
            line.sendall(f"GET /events?{query} HTTP/1.1\r\nHost: engine\r\n\r\n".encode())
        except OSError:
            line.close()
            raise
        line.setblocking(False)
        return line

    def named(self, part: str) -> "list[str]":
        """Names of containers, running or not, that contain these letters."""
        rows = self.send("GET", "/containers/json", all="true", filters=json.dumps({"name": [part]})) or []
        return [name.removeprefix("/") for row in rows for name in row.get("Names") or []]

    def labelled(self, label: str) -> "list[dict[str, Any]]":
        """Every container with this label, running or not."""
        return list(self.send("GET", "/containers/json", all="true", filters=json.dumps({"label": [label]})) or [])

    def _unless(self, harmless: tuple[int, ...], method: str, path: str, **query: str) -> None:
        try:
            self.send(method, path, **query)
        except Refused as exc:
            if exc.status not in harmless:
                raise


def is_cut(line: socket.socket) -> bool:
    """Whether the engine at the other end of a connection of `listen` has ended, even if another replaced it."""
    try:
        while line.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("engine", timeout=timeout_s)
        self.path = path

    def connect(self) -> None:
        """Open the socket; called by http.client."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)
