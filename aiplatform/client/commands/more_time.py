"""`aip extend`, `aip requests`: request and grant more run time."""

from __future__ import annotations

from aiplatform.client.commands.approvals import ANSWER, CLUSTER, WORD
from aiplatform.client.options import ID, LIMIT, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb

REQUESTS = columns("id, job, name=job_name, owner, cluster, hours, why=reason, answer, word")
DONE = "Request {args.id}: {row[answer]}."

NOUNS = {
    "extend": Verb("extend", "Ask for more run time for a job.", (
        option("job", help="id of the job"),
        option("--hours", type=float, required=True, help="how much longer"),
        option("--reason", required=True, help="why; who decides reads it"),
    ), post="jobs/{job}/extend/", once=True, done="Asked for {args.hours:g} h more for job {args.job}."),
    "requests": (
        Verb("list", "List requests, newest first.",
             (ANSWER, CLUSTER, option("--job", help="only of this job"), LIMIT),
             get="time-requests/", table=REQUESTS, empty="Nobody asks for more time."),
        Verb("grant", "Grant one; counts at once.",
             (ID, WORD, option("--hours", type=float, help="where it differs from what was asked for")),
             post="time-requests/{id}/answer/", send={"grant": True}, done=DONE),
        Verb("deny", "Deny one.", (ID, WORD), post="time-requests/{id}/answer/", send={"grant": False}, done=DONE),
    ),
}  # fmt: skip
