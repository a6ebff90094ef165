"""Connection from a job to a server outside: `aip-connect HOST PORT`, for what speaks no HTTP.

It asks the job's HTTP proxy for a tunnel, which judges names and addresses as for HTTPS, and carries its own input and
output through it, as a ProxyCommand of ssh does. `aip-connect --listen LOCAL HOST PORT` opens a port of the job's own
loopback instead, for programs that connect by themselves: a database's client, for one. Where the job has no proxy it
connects directly. Standard library only.
"""

import _thread
import os
import socket
import sys

CHUNK = 262144
CONNECT_S = 90.0  # the proxy looks the name up and tries each address, half a minute for either
LONGEST = 65536  # bytes of the proxy's answer
FAILED = 255
USAGE = "usage: aip-connect [--listen LOCAL_PORT] HOST PORT\n"


def main() -> int:
    """Do what the words ask for; returns what to end with."""
    words = sys.argv[1:]
    local = ""
    if len(words) == 4 and words[0] == "--listen":
        local, words = words[1], words[2:]
    if len(words) != 2 or not _is_port(words[1]) or (local and not _is_port(local)):
        sys.stderr.write(USAGE)
        return FAILED
    host, port = words[0], int(words[1])
    try:
        if local:
            _listen(int(local), host, port)
        _carry(connected(host, port))
    except OSError as exc:
        _say(host, port, exc)
        return FAILED
    return 0


def connected(host: str, port: int) -> socket.socket:
    """A connection to a server, through the job's proxy where it has one.

    Raises:
        OSError: there is none; it says why.
    """
    proxy = os.environ.get("HTTPS_PROXY", "").removeprefix("http://").strip("/")
    if not proxy or host in os.environ.get("NO_PROXY", "").split(","):
        made = socket.create_connection((host, port), CONNECT_S)
    else:
        made = _tunnel(proxy, host, port)
    made.settimeout(None)
    return made


def _tunnel(proxy: str, host: str, port: int) -> socket.socket:
    name, _colon, number = proxy.rpartition(":")
    if not name or not _is_port(number):
        raise OSError("HTTPS_PROXY names no host and port. Write it as http://HOST:PORT.")
    made = socket.create_connection((name, int(number)), CONNECT_S)
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        made.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
        head = _head(made)
        if head.split(b" ", 2)[1:2] != [b"200"]:
            why = made.recv(LONGEST).decode(errors="replace").strip()
            raise OSError(why or head.partition(b"\r\n")[0].decode(errors="replace"))
    except BaseException:
        made.close()
        raise
    return made


def _head(made: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < LONGEST:
        try:
            byte = made.recv(1)  # what follows belongs to the server
        except ConnectionError:
            byte = b""
        if not byte:
            raise OSError("no way out: the platform's exec_relay does not answer on this machine")
        head += byte
    return head


def _listen(local: int, host: str, port: int) -> None:
    """Carry each connection to a port of the loopback to the server, until this is ended."""
    with socket.create_server(("127.0.0.1", local)) as server:
        while True:
            _thread.start_new_thread(_served, (server.accept()[0], host, port))


def _served(near: socket.socket, host: str, port: int) -> None:
    with near:
        try:
            with connected(host, port) as far:
                _both_ways(near, far)
        except OSError as exc:
            _say(host, port, exc)


def _both_ways(near: socket.socket, far: socket.socket) -> None:
    done = _thread.allocate_lock()
    done.acquire()

    def back() -> None:
        _copy(far.fileno(), near.fileno(), near)
        done.release()

    _thread.start_new_thread(back, ())
    _copy(near.fileno(), far.fileno(), far)
    done.acquire()


def _carry(far: socket.socket) -> None:
    """Carry input there and what comes to output, until the server has said all."""
    _thread.start_new_thread(_copy, (0, far.fileno(), far))
    _copy(far.fileno(), 1, None)


def _copy(source: int, target: int, ends: "socket.socket | None") -> None:
    """Copy to the end, and say on a socket that this was all."""
    try:
        while data := os.read(source, CHUNK):
            while data:
                data = data[os.write(target, data) :]
    except OSError:  # one side is gone
        pass
    if ends is not None:
        try:
            ends.shutdown(socket.SHUT_WR)
        except OSError:
            return


def _is_port(word: str) -> bool:
    return word.isascii() and word.isdigit() and 0 < int(word) < 65536


def _say(host: str, port: int, why: OSError) -> None:
    sys.stderr.write(f"aip-connect: {host}:{port}: {why}\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
