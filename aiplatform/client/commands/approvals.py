"""`aip approvals`: what waits for an approval of a cluster, and the answers."""

from __future__ import annotations

from aiplatform.client.commands.lookup import cluster
from aiplatform.client.options import ID, LIMIT, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb

COLUMNS = columns("id, job, name=job_name, kind, owner, cluster, answer, word")
ANSWER = option("--answer", choices=["open", "granted", "denied"], help="only these")
CLUSTER = option("--cluster", help="only of this cluster: name or id", find=cluster)
WORD = option("--word", default="", help="a word to the owner")
DONE = "Approval {args.id}: {row[answer]}."

NOUNS = {
    "approvals": (
        Verb("list", "List approvals, newest first.", (ANSWER, CLUSTER, LIMIT),
             get="approvals/", table=COLUMNS, empty="Nothing waits for an approval."),
        Verb("grant", "Let the job start.", (ID, WORD), post="approvals/{id}/answer/", send={"grant": True}, done=DONE),
        Verb("refuse", "Refuse it; the job ends as stopped.", (ID, WORD),
             post="approvals/{id}/answer/", send={"grant": False}, done=DONE),
    ),
}  # fmt: skip
