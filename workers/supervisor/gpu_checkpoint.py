"""Where a job's card memory is: on its cards, on the host, or on its way. By steps, never waiting."""

import json
import os
import signal
import sys

from workers.supervisor import cuda_checkpoint, processes

ON, LEAVING, OFF, RETURNING, STUCK = "on", "leaving", "off", "returning", "stuck"
LIMIT_S = 90.0  # one way; 80 GB take about 10 s
MAX_ATTEMPTS = 3  # to bring it back, before the job is given up
RETRY_DELAY_S = 2.0


class GpuCheckpoint:
    """Moves the CUDA memory of everything below this process off the cards and back.

    Attributes:
        at: ON, LEAVING, OFF, RETURNING, or STUCK: off the card, and no way back.
        why: what kept it on its cards; until that is forgiven it does not try again.
        trouble: what keeps it off them, the last time it was to come back.
        helper: pid of the process that does it, 0 while none does.
    """

    def __init__(self, library: str) -> None:
        self.library = library
        self.at, self.why, self.trouble, self.helper = ON, "", "", 0
        self._said = -1  # the helper's answer
        self._heard = b""
        self._until = self._not_before = 0.0
        self._tries = 0

    @property
    def away(self) -> bool:
        """Whether its memory is not, or not surely, on its cards."""
        return self.at != ON

    def step(self, evict: bool, now: float) -> str:
        """Do what is due at `now` (monotonic seconds) to leave the GPUs or to return; return where the memory is."""
        if self.at == ON and evict and not self.why:
            self.at = LEAVING
            self._start_helper("evict", now)
        elif self.at == OFF and not evict:
            self.at, self._tries = RETURNING, 0
            self._start_helper("restore", now)
        elif self.helper:
            answer = self._answer(now)
            if answer is not None:
                self._apply_answer(answer, now)
        elif self.at == RETURNING and now >= self._not_before:
            self._start_helper("restore", now)
        return self.at

    def forgive(self) -> None:
        """Forget that it could not leave."""
        if self.at == ON:
            self.why = ""

    def abandon(self) -> None:
        """End the helper: what it works on is ended too."""
        if self.helper:
            self._kill()
            self._close()

    def _apply_answer(self, answer: "dict[str, object]", now: float) -> None:
        """Continue by the helper's answer; one that crashed may have left a move half done."""
        why = str(answer.get("why", ""))
        if answer.get("ok"):
            self.at = OFF if self.at == LEAVING else ON
            self.trouble = ""
        elif self.at == LEAVING:
            self.why = why
            self.at = RETURNING if answer.get("half") else ON
            self._tries, self._not_before = 0, now
        else:
            self.trouble = why
            self._tries += 1
            self._not_before = now + RETRY_DELAY_S
            if self._tries >= MAX_ATTEMPTS:
                self.at = STUCK

    def _start_helper(self, verb: str, now: float) -> None:
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        argv = [sys.executable, "-I", "-S", os.path.realpath(cuda_checkpoint.__file__), verb, self.library]
        pid = os.fork()
        if pid == 0:
            try:
                os.set_blocking(writer, True)
                os.dup2(writer, 1)
                os.execv(argv[0], argv)
            finally:
                os._exit(127)
        os.close(writer)
        self.helper, self._said, self._heard, self._until = pid, reader, b"", now + LIMIT_S

    def _answer(self, now: float) -> "dict[str, object] | None":
        """Last answer of the helper process; None while it works. One that failed or took too long answers that."""
        why = "the process that talks to the driver was ended"
        try:
            while part := os.read(self._said, 65536):
                self._heard += part
        except BlockingIOError:
            if now < self._until:
                return None
            self._kill()
            why = f"the driver did not answer within {LIMIT_S:g} s"
        self._close()
        try:
            answer = json.loads(self._heard.splitlines()[-1])
        except (ValueError, IndexError):
            answer = {}
        return answer if "ok" in answer else {"why": why, "half": bool(self._heard)}

    def _kill(self) -> None:
        if self.helper in processes.children(os.getpid()):  # else it is over, and its number may be another's
            processes.send([self.helper], signal.SIGKILL)

    def _close(self) -> None:
        os.close(self._said)
        self._said, self.helper = -1, 0
