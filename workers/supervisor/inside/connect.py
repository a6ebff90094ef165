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
MAX_BYTES = 65536  # bytes of the proxy's answer
FAILED = 255
USAGE = "usage: aip-connect [--listen LOCAL_PORT] HOST PORT\n"


def main() -> int:
    """Run the program by its arguments; return its exit code."""
    argv = sys.argv[1:]
    local = ""
    if len(argv) == 4 and argv[0] == "--listen":
        local, argv = argv[1], argv[2:]
    if len(argv) != 2 or not _is_port(argv[1]) or (local and not _is_port(local)):
        sys.stderr.write(USAGE)
        return FAILED
    host, port = argv[0], int(argv[1])
    try:
        if local:
            _listen(int(local), host, port)
        _carry(connected(host, port))
    except OSError as exc:
        _print_error(host, port, exc)
        return FAILED
    return 0


def connected(host: str, port: int) -> socket.socket:
    """A connection to a server, through the job's proxy where it has one.

    Raises:
        OSError: there is none; it says why.
    """
    proxy = os.environ.get("HTTPS_PROXY", "").removeprefix("http://").strip("/")
    if not proxy or host in os.environ.get("NO_PROXY", "").split(","):
        tunnel = socket.create_connection((host, port), CONNECT_S)
    else:
        tunnel = _tunnel(proxy, host, port)
    tunnel.settimeout(None)
    return tunnel


def _tunnel(proxy: str, host: str, port: int) -> socket.socket:
    name, _colon, number = proxy.rpartition(":")
    if not name or not _is_port(number):
        raise OSError("HTTPS_PROXY names no host and port. Write it as http://HOST:PORT.")
    connection = socket.create_connection((name, int(number)), CONNECT_S)
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        connection.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
        head = _head(connection)
        if head.split(b" ", 2)[1:2] != [b"200"]:
            why = connection.recv(MAX_BYTES).decode(errors="replace").strip()
            raise OSError(why or head.partition(b"\r\n")[0].decode(errors="replace"))
    except BaseException:
        connection.close()
        raise
    return connection


def _head(connection: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < MAX_BYTES:
        try:
            byte = connection.recv(1)  # what follows belongs to the server
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
            _print_error(host, port, exc)


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
    """Copy input to the server and its data to output, until the server has sent all."""
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


def _print_error(host: str, port: int, why: OSError) -> None:
    sys.stderr.write(f"aip-connect: {host}:{port}: {why}\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
