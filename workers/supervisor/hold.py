"""Hold: stand still while somebody copies what the job's programs write, and go on whatever becomes of that somebody.

The file `hold` names the process that asks; once the job's processes stand, `held` repeats its word. A holder that is
gone, or takes longer than `LONGEST_S`, holds nobody. Apart from pausing: nothing is requested of the job, and one that
is paused meanwhile stays paused.
"""

import json
import os
import time

from workers.supervisor import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workers.supervisor.ladder import ProcessPause

HOLD, HELD = "hold", "held"
MAX_DURATION_S = 900.0


def request(run: "records.Name", word: str) -> None:
    """Ask the supervisor of this run to stop its processes for the calling process; `release` resumes them."""
    own = {"pid": os.getpid(), "start_ticks": records.start_ticks(os.getpid()), "boot_id": records.boot_id()}
    records.write(os.path.join(run, HOLD), {**own, "word": word})


def release(run: "records.Name") -> None:
    """Let the processes go on."""
    records.write(os.path.join(run, HOLD), "")


def is_held(run: "records.Name", word: str) -> bool:
    """Whether the processes are stopped for the request with `word`."""
    return (records.read(os.path.join(run, HELD)) or {}).get("word") == word


class Hold:
    """The supervisor's side: looks at the file at every step."""

    def __init__(self, run: str, pausing: "ProcessPause") -> None:
        self.run, self.pausing = run, pausing
        self.word = ""  # of whom they stand still for
        self._since = 0.0

    @property
    def active(self) -> bool:
        """Whether a stop is requested."""
        return bool(self.word)

    def step(self, *, ends: bool, rests: bool) -> None:
        """Do what is due.

        Args:
            ends: the job is on its way down, which nobody holds up.
            rests: it is paused anyway, and stays so.
        """
        word = "" if ends else self._read_request()
        if word != self.word:
            was, self.word, self._since = self.word, word, time.monotonic()
            records.remove(os.path.join(self.run, HELD))
            if was and not word and not rests:
                self.pausing.resume()
        if not word:
            return
        if time.monotonic() - self._since > MAX_DURATION_S:
            records.remove(os.path.join(self.run, HOLD))
        elif self.pausing.pause() and not is_held(self.run, word):
            records.write(os.path.join(self.run, HELD), {"word": word})

    def _read_request(self) -> str:
        try:
            text = records.text(os.path.join(self.run, HOLD))
        except OSError:
            return ""
        try:
            request = json.loads(text) if text else {}
        except ValueError:
            return ""
        return str(request.get("word", "")) if isinstance(request, dict) and records.is_alive(request) else ""
