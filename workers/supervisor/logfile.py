"""The log is the file the command itself writes to: no pipe, so nothing is lost when a reader dies."""

import os

from workers.supervisor import log_lines, records, secrecy

TAIL_BYTES = 64 << 10
HEAD_BYTES = 1 << 20  # where a log's first line stands: before it is at most how its image was fetched


def marker(quota_bytes: int) -> str:
    """Return the words at the place where a log was cut."""
    return f"\n[log cut at {quota_bytes:,} bytes; the job goes on, its last lines follow at the end]\n"


class LogFile:
    """log.txt of a run, opened for appending, kept below a quota.

    The command writes straight into the file, so the quota is kept by cutting
    what came after it, every time somebody looks. The job never sees an error;
    the reader finds a marker, and at the end the last 64 KiB that were written.
    What readers see of it meanwhile ends at the marker (workers.jobs.output.logs).
    """

    def __init__(self, path: str, quota_bytes: int, secrets: list[str]) -> None:
        self.path = path
        self.quota = quota_bytes
        self.secrets = secrets  # starred out when the log is closed; readers star them out until then
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        self.cut_bytes = 0
        self._length_when_cut = 0
        self._tail = b""
        self._owed: list[bytes] = []  # lines of ours that a full disk refused

    @property
    def size_bytes(self) -> int:
        return os.fstat(self.fd).st_size

    def add(self, phase: str, code: str, /, **facts: object) -> None:
        """Add a line of ours, as `log_lines` defines it, once there is room."""
        self.note(log_lines.line(phase, code, **facts))

    def add_end(self, code: int | None, signal_name: str, span_s: float) -> None:
        """Add how the command ended, and after how long."""
        if signal_name:
            self.add(log_lines.PROGRAM, "signalled", signal=signal_name, seconds=span_s)
        else:
            self.add(log_lines.PROGRAM, "exited", code=code, seconds=span_s)

    def write_opening(self, lines: list[str]) -> None:
        """Write the opening lines, unless they are there; lines of the time before may precede them."""
        if lines and not self._owed and lines[0].encode() not in os.pread(self.fd, HEAD_BYTES, 0).split(b"\n"):
            self.note("\n".join(lines))

    def note(self, text: str) -> None:
        """Add a line of ours to the log, once there is room for it; it begins a line whatever the program printed."""
        size = self.size_bytes
        is_mid_line = bool(size) and not self._owed and os.pread(self.fd, 1, size - 1) != b"\n"
        self._owed.append(f"{chr(10) if is_mid_line else ''}{text}\n".encode())
        self._write_owed()

    def _write_owed(self) -> None:
        while self._owed:
            try:
                written = os.write(self.fd, self._owed[0])
            except OSError as exc:
                if not records.is_refused(exc):
                    raise
                return
            self._owed[0] = self._owed[0][written:]
            if not self._owed[0]:
                del self._owed[0]

    def keep_quota(self) -> None:
        """Cut the file back if it outgrew its quota, and add what is owed. On a full disk the next look does."""
        self._write_owed()
        size = self.size_bytes
        if size <= max(self.quota, self._length_when_cut):
            return
        start = max(size - TAIL_BYTES, self.quota, self._length_when_cut)
        tail = (self._tail + os.pread(self.fd, TAIL_BYTES, start))[-TAIL_BYTES:]
        try:
            if not self._length_when_cut:
                self._mark()
                self.cut_bytes += size - self.quota
            else:
                self.cut_bytes += size - self._length_when_cut
            os.ftruncate(self.fd, self._length_when_cut)
        except OSError as exc:
            if not records.is_refused(exc):
                raise
            return
        self._tail = tail

    def _mark(self) -> None:
        """Write the marker at the quota, whatever a flood appends meanwhile: our own descriptor only appends."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        text = marker(self.quota).encode()
        try:
            os.pwrite(descriptor, text, self.quota)
        finally:
            os.close(descriptor)
        self._length_when_cut = self.quota + len(text)

    def close(self) -> bool:
        """Write the kept tail of a cut log, star out secrets and make the file durable.

        False where the disk refuses that now: call it again. Lines of ours that found no room by then are given up.
        """
        self.keep_quota()
        if self._tail:
            tail, self._tail = self._tail, b""
            self.add(log_lines.PROGRAM, "cut", bytes=self.cut_bytes)
            self._owed.append(tail.partition(b"\n")[2] or tail)
            self._write_owed()
        try:
            secrecy.mask_file(self.path, self.secrets)
            os.fsync(self.fd)
        except OSError as exc:
            if not records.is_refused(exc):
                raise
            return False
        os.close(self.fd)
        return True
