"""Command watch: sees that the command itself is over where something withholds its end from the supervisor.

What stands around a command (bubblewrap's two processes, a container's init) ends with it within milliseconds. A job
can stop or trace the inner one, and a debugger can hold any of them; the job must not keep its devices by that.
"""

import signal

from workers.supervisor import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

WAKE_S, HELD_S = 1.0, 3.0  # from the command's end: until what stands still is let go on; until nobody waits for it
_LOOK_S = 0.5
_BEGUN_S = 300.0  # what shows no command for so long has none


class CommandWatch:
    """Tells when the command has been over for so long that its end is withheld.

    Args:
        layers: what stands around the command now, outermost first, and the children of the innermost; the command
            is the oldest of these. Without anything around it, it is our own child.
    """

    def __init__(self, layers: "Callable[[], tuple[list[int], list[int]]]") -> None:
        self.layers = layers
        self.code: int | None = None  # the command's, negative for a signal, where it is over and can be read
        self._seen = self._woken = False
        self._begun: float | None = None
        self._over_since: float | None = None
        self._looked = float("-inf")

    def held(self, now: float) -> bool:
        """Whether the command ended `HELD_S` ago and is not to be waited for any longer.

        Args:
            now: monotonic seconds. Call it as often as you like.
        """
        if now - self._looked < _LOOK_S:
            return False
        self._looked = now
        self._begun = now if self._begun is None else self._begun
        around, below = self.layers()
        if not self._is_over(around, below, now):
            self._over_since, self._woken, self.code = None, False, None
            return False
        self._over_since = now if self._over_since is None else self._over_since
        if now - self._over_since >= WAKE_S and not self._woken:
            self._woken = True
            processes.send(around, signal.SIGCONT)
        return now - self._over_since >= HELD_S

    def _is_over(self, around: list[int], below: list[int], now: float) -> bool:
        assert self._begun is not None
        if below:
            self._seen = True
            self.code = processes.exit_code(below[0])
            return not processes.alive(below[:1])
        return self._seen or now - self._begun > _BEGUN_S or any(processes.state(pid) in "Tt" for pid in around)
