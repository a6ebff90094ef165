"""What jobs count as where a cluster limits how many of them a person may run. Pure.

A job kind names the class of its jobs (`counts_as`, see kinds.py); the planner knows classes, not kinds. A new class
needs a line in `CLASSES`, a column of `VirtualCluster` and two sentences in wait_reasons.py.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CountClass:
    """One class of jobs.

    Attributes:
        name: the word in planner input, and in a resource group that is kept for all kinds of this class.
        column: the column of `VirtualCluster` with the most that a person may run; None there means no limit.
        full: code of a job that waits because its owner runs so many.
        none_allowed: code of the refusal where the limit is 0.
    """

    name: str
    column: str
    full: str
    none_allowed: str


JOB = CountClass("job", "jobs_per_user", "user_jobs", "no_jobs_allowed")
ENVIRONMENT = CountClass("environment", "environments_per_user", "user_environments", "no_environments_allowed")

CLASSES: dict[str, CountClass] = {count_class.name: count_class for count_class in (JOB, ENVIRONMENT)}
