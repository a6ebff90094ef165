"""`aip approvals`, `aip requests`, `aip extend`: approvals of jobs, and requests for more run time."""

from __future__ import annotations

from aiplatform.client.commands.lookup import cluster
from aiplatform.client.options import ID, LIMIT, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb

APPROVALS = columns("id, job, name=job_name, kind, owner, cluster, answer, word")
REQUESTS = columns("id, job, name=job_name, owner, cluster, hours, why=reason, answer, word")
ANSWER = option("--answer", choices=["open", "granted", "denied"], help="only these")
CLUSTER = option("--cluster", help="only of this cluster: name or id", find=cluster)
WORD = option("--word", default="", help="message to the owner")
APPROVAL_DONE = "Approval {args.id}: {row[answer]}."
REQUEST_DONE = "Request {args.id}: {row[answer]}."

NOUNS = {
    "approvals": (
        Verb("list", "List approvals, newest first.", (ANSWER, CLUSTER, LIMIT),
             get="approvals/", table=APPROVALS, empty="No pending approvals."),
        Verb("grant", "Approve the start of a job.", (ID, WORD),
             post="approvals/{id}/answer/", send={"grant": True}, done=APPROVAL_DONE),
        Verb("refuse", "Deny the start; the job ends as stopped.", (ID, WORD),
             post="approvals/{id}/answer/", send={"grant": False}, done=APPROVAL_DONE),
    ),
    "extend": Verb("extend", "Request more run time for a job.", (
        option("job", help="id of the job"),
        option("--hours", type=float, required=True, help="additional time"),
        option("--reason", required=True, help="reason, shown to the deciding administrators"),
    ), post="jobs/{job}/extend/", once=True, done="Requested {args.hours:g} h more for job {args.job}."),
    "requests": (
        Verb("list", "List requests, newest first.",
             (ANSWER, CLUSTER, option("--job", help="only of this job"), LIMIT),
             get="time-requests/", table=REQUESTS, empty="No requests for more time."),
        Verb("grant", "Grant a request; applies immediately.",
             (ID, WORD, option("--hours", type=float, help="if different from the requested time")),
             post="time-requests/{id}/answer/", send={"grant": True}, done=REQUEST_DONE),
        Verb("deny", "Deny a request.", (ID, WORD),
             post="time-requests/{id}/answer/", send={"grant": False}, done=REQUEST_DONE),
    ),
}  # fmt: skip
