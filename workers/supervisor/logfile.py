"""The log is the file the command itself writes to: no pipe, so nothing is lost when a reader dies."""

import os

from workers.supervisor import secrecy

TAIL_BYTES = 64 << 10


def marker(quota_bytes: int) -> str:
    """Return the words at the place where a log was cut."""
    return f"\n[log cut at {quota_bytes:,} bytes; the job goes on, its last lines follow at the end]\n"


class LogFile:
    """log.txt of a run, opened for appending, kept below a quota.

    The command writes straight into the file, so the quota is kept by cutting
    what came after it, every time somebody looks. The job never sees an error;
    the reader finds a marker, and at the end the last 64 KiB that were written.
    What readers see of it meanwhile ends at the marker (workers.output.logs).
    """

    def __init__(self, path: str, quota_bytes: int, secrets: list[str]) -> None:
        self.path = path
        self.quota = quota_bytes
        self.secrets = secrets  # starred out when the log is closed; readers star them out until then
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        self.cut_bytes = 0
        self._length_when_cut = 0
        self._tail = b""

    @property
    def size_bytes(self) -> int:
        return os.fstat(self.fd).st_size

    def note(self, text: str) -> None:
        """Add a line of ours to the log."""
        os.write(self.fd, f"{text}\n".encode())

    def keep_quota(self) -> None:
        """Cut the file back if it outgrew its quota."""
        size = self.size_bytes
        if size <= max(self.quota, self._length_when_cut):
            return
        start = max(size - TAIL_BYTES, self.quota, self._length_when_cut)
        self._tail = (self._tail + os.pread(self.fd, TAIL_BYTES, start))[-TAIL_BYTES:]
        if not self._length_when_cut:
            self.cut_bytes += size - self.quota
            self._mark()
        else:
            self.cut_bytes += size - self._length_when_cut
        os.ftruncate(self.fd, self._length_when_cut)

    def _mark(self) -> None:
        """Write the marker at the quota, whatever a flood appends meanwhile: our own descriptor only appends."""
        placed = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        words = marker(self.quota).encode()
        os.pwrite(placed, words, self.quota)
        os.close(placed)
        self._length_when_cut = self.quota + len(words)

    def close(self) -> None:
        """Write the kept tail of a cut log, star out secrets and make the file durable."""
        self.keep_quota()
        if self._tail:
            self.note(f"[{self.cut_bytes:,} bytes cut; the last of them:]")
            os.write(self.fd, self._tail.partition(b"\n")[2] or self._tail)
        secrecy.mask_file(self.path, self.secrets)
        os.fsync(self.fd)
        os.close(self.fd)
