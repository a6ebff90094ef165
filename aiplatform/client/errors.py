"""Errors of the client and their exit codes."""

from __future__ import annotations

OK = 0
FAILURE = 1
USAGE = 2
NOT_SIGNED_IN = 4
NOT_FOUND = 5
JOB_FAILED = 6
INTERRUPTED = 130


class ClientError(Exception):
    """A message for the person at the terminal, and the exit code of the command."""

    def __init__(
        self, message: str, exit_code: int = FAILURE, *, code: str = "", status: int = 0, retry_after_s: float = 0.0
    ) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.code = code  # the problem's stable code, for scripts
        self.status = status  # HTTP status; 0 where no answer came
        self.retry_after_s = retry_after_s  # after which the platform takes the request; 0: it did not say
