"""Order of the queue: who comes next. Pure.

First whoever running work makes room for; then urgent work; then whoever waited longer than the guard, oldest
first, so that nobody starves; then by priority; among equals services, which cannot answer requests while they
wait; then by fair share: decayed card-hours of the person and the cluster, minus the time waited.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from workers.planning.planner.policy import DEFAULT, Policy
from workers.planning.planner.snapshot import FULL_CARD, URGENT, Snapshot, Waiting

GUARD_S = DEFAULT.guard_s
HALF_LIFE_S = 7 * 24 * 3600.0

_NUMBER, _QUEUED_AT, _PRIORITY = attrgetter("job"), attrgetter("queued_at"), attrgetter("priority")
_ANSWERS = attrgetter("answers_requests")


def queue_order(snapshot: Snapshot, now: float, policy: Policy = DEFAULT) -> list[Waiting]:
    """Return the waiting jobs in the order in which they may be offered devices.

    Within the fair tier each job of a person is charged the cards of their running jobs and of
    their earlier waiting jobs for one hour, so ten jobs sent at once do not pass one sent by a neighbour.
    """
    owed: dict[int, float] = defaultdict(float)
    promised = set()
    for run in snapshot.running:
        owed[run.owner] += run.card_shares / FULL_CARD
        if run.preempting and run.for_job is not None:
            promised.add(run.for_job)
    usage, cluster_usage = snapshot.usage, snapshot.cluster_usage
    guard_s, age_weight, cluster_weight = policy.guard_s, policy.age_weight / 3600.0, policy.cluster_weight
    used_by: dict[tuple[int, int], float] = {}  # what a person in a cluster has used
    costs: dict[int, float] = {}  # by the identity of the request
    room: list[Waiting] = []
    urgent: list[Waiting] = []
    guarded: list[Waiting] = []
    fair: list[Waiting] = []
    scores: list[float] = []  # of the jobs in `fair`: used card-hours less the time waited
    queue = _by_age(snapshot.waiting)
    queue.sort(key=_PRIORITY, reverse=True)  # sorts are stable: equal priorities stay in order of age
    for job in queue:
        if job.promised or job.job in promised:
            room.append(job)
        elif job.priority >= URGENT:
            urgent.append(job)
        elif now - job.queued_at >= guard_s:
            guarded.append(job)
        else:
            owner, user_key, request_id = job.owner, (job.owner, job.cluster), id(job.request)
            if user_key not in used_by:
                used_by[user_key] = usage.get(owner, 0.0) + cluster_weight * cluster_usage.get(job.cluster, 0.0)
            if request_id not in costs:
                costs[request_id] = cost_per_hour(job, policy)
            used = used_by[user_key] + owed[owner]
            owed[owner] += costs[request_id]
            fair.append(job)
            scores.append(used - age_weight * (now - job.queued_at))
    fair = [fair[i] for i in sorted(range(len(fair)), key=scores.__getitem__)]
    fair.sort(key=_ANSWERS, reverse=True)
    fair.sort(key=_PRIORITY, reverse=True)
    return [*room, *urgent, *_by_age(guarded), *fair]


def _by_age(jobs: Iterable[Waiting]) -> list[Waiting]:
    """The oldest first, of equally old ones the one with the lower id; two sorts by a number beat one by a tuple."""
    return sorted(sorted(jobs, key=_NUMBER), key=_QUEUED_AT)


def cost_per_hour(job: Waiting, policy: Policy = DEFAULT) -> float:
    """Card-hours that one hour of `job` costs its owner in the fair share."""
    requested = job.request
    if requested.gpus:
        return requested.nodes * requested.gpus * requested.shares / FULL_CARD
    return requested.nodes * requested.cpu_shares / FULL_CARD * policy.cpu_weight


def decayed_hours(spans: Iterable[tuple[float, float, float]], now: float) -> float:
    """Card-hours of the spans (start, end, cards), each moment halved for every 7 days since.

    The integral of cards · 2^-((now-t)/half-life) over the span, in closed form.
    """
    total = 0.0
    scale = HALF_LIFE_S / 0.6931471805599453 / 3600.0
    for start, end, cards in spans:
        if end > start:
            newer = 2.0 ** (-max(0.0, now - end) / HALF_LIFE_S)
            older = 2.0 ** (-max(0.0, now - start) / HALF_LIFE_S)
            total += cards * scale * (newer - older)
    return total


def how_many_first(jobs: Sequence[Waiting], holds: Callable[[Waiting], bool]) -> int:
    """Number of leading jobs for which `holds` is true."""
    return next((index for index, job in enumerate(jobs) if not holds(job)), len(jobs))
