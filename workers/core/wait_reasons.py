"""The sentences behind the codes of `plan.Wait` and `fit.Never`.

Rows keep code and figures; people read the sentence in their own language.
"""

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

SENTENCES = {
    "new": _("Just queued; the scheduler looks at it in a moment."),
    "no_cards": _("Waits for GPUs: %(asked)s requested, %(free)s free."),
    "no_share": _("Waits for a share of a GPU: %(asked)s/8 requested, at most %(free)s/8 free on one GPU."),
    "scattered": _(
        "Waits for GPUs on one node: %(asked)s requested, %(free)s free in total but at most %(best)s on one node."
    ),
    "no_cpu": _("Waits for CPU cores: %(asked)s requested on one node."),
    "no_machine": _("No machine that is up can hold it; it starts when one comes back."),
    "no_such_tier": _("No machine that is up has an isolation tier from %(least)s to %(most)s, as its image needs."),
    "reserved": _("There is room, but it is kept for job %(job)s, which came first and needs it at once."),
    "cluster_quota": _("The cluster's quota is used up: %(used)s of %(limit)s cards taken, %(asked)s asked."),
    "user_cards": _("Your share of the cluster is used up: %(used)s of %(limit)s cards, %(asked)s asked."),
    "guaranteed_cards": _(
        "Only %(limit)s cards are guaranteed to no cluster, %(used)s of them are taken, %(asked)s asked."
        " Let it make room for others (preemptible), and it may borrow the rest."
    ),
    "guaranteed_cores": _(
        "Only %(limit)s CPU slots are guaranteed to no cluster, %(used)s of them are taken, %(asked)s asked."
        " Let it make room for others (preemptible), and it may borrow the rest."
    ),
    "cluster_cores": _("The cluster's quota is used up: %(used)s of %(limit)s CPU slots taken, %(asked)s asked."),
    "user_cores": _("Your share of the cluster is used up: %(used)s of %(limit)s CPU slots, %(asked)s asked."),
    "user_jobs": _("%(running)s of your jobs run already; the cluster allows %(limit)s at a time."),
    "user_environments": _("%(running)s of your environments run already; the cluster allows %(limit)s at a time."),
    "making_room": _("Room is being made for it; it starts as soon as the cards are free."),
    "nothing_idle": _(
        "Your cluster's own cards are used up (%(used)s of %(limit)s), and no other cluster leaves %(asked)s idle."
    ),
    "no_idle_cores": _(
        "Your cluster's own CPU slots are used up (%(used)s of %(limit)s), and no other cluster leaves %(asked)s idle."
    ),
    "kept_group": _("At this hour the machines of %(group)s are kept for other kinds of work."),
    "paused": _("It is paused and holds nothing; continue it and it takes its place again."),
    "backoff": _("Starts again after a pause, because it failed a short while ago."),
    "unapproved": _("Waits until somebody in charge of its cluster lets it start."),
    "waits_for_image": _("Waits for the image %(image)s, which job %(job)s builds first."),
    "after_success": _("Starts once job %(job)s has completed."),
    "after_end": _("Starts once job %(job)s has ended."),
    "after_many": _("Starts after %(count)s other jobs; the first of them is job %(job)s."),
    "array_full": _("As many jobs of its array run as may run at a time: %(limit)s."),
    "machine_full": _(
        "Waits for room on the machine %(node)s, where its own packages lie. To start it elsewhere, forget them on its"
        " page, or begin a new one from a saved image."
    ),
    "machine_too_small": _(
        "The machine %(node)s, where its own packages lie, cannot hold what it asks for. Forget them on its page, or"
        " begin a new one from a saved image."
    ),
    "machine_drained": _(
        "Its own packages lie on the machine %(node)s, which an operator has drained. It starts once that takes work"
        " again; to start it elsewhere, forget them on its page, or begin a new one from a saved image."
    ),
    "machine_silent": _(
        "Its own packages lie on the machine %(node)s, which does not answer. It starts once that is back; to start it"
        " elsewhere, forget them on its page, or begin a new one from a saved image."
    ),
    "machine_removed": _(
        "Its own packages lie on the machine %(node)s, which was removed. Forget them on its page to begin from the"
        " image again, or begin a new one from a saved image."
    ),
    "no_cluster": _("Its virtual cluster no longer exists."),
    "no_root_inside": _("No machine that could hold it offers root inside. Leave root inside out, or ask an operator."),
    "over_cluster_quota": _("%(asked)s cards asked, %(cluster)s has %(limit)s."),
    "over_user_cards": _("%(asked)s cards asked, %(cluster)s allows %(limit)s per person."),
    "over_cluster_cores": _("%(asked)s cores asked, %(cluster)s has %(limit)s CPU slots."),
    "over_user_cores": _("%(asked)s cores asked, %(cluster)s allows %(limit)s CPU slots per person."),
    "over_unowned_cards": _(
        "%(asked)s cards asked, only %(limit)s are guaranteed to no cluster. Let it make room for others (preemptible),"
        " and it may borrow the rest."
    ),
    "over_unowned_cores": _(
        "%(asked)s cores asked, only %(limit)s CPU slots are guaranteed to no cluster."
        " Let it make room for others (preemptible), and it may borrow the rest."
    ),
    "no_jobs_allowed": _("%(cluster)s runs no jobs at present."),
    "no_environments_allowed": _("%(cluster)s runs no environments at present."),
    "kept_for_others": _("The machines that could hold it are kept for other kinds of work: %(groups)s."),
    "not_shareable": _("A card of kind %(kind)s cannot be shared; ask for whole cards."),
    "count_not_allowed": _("%(asked)s cards asked; of kind %(kind)s a job takes %(allowed)s per machine."),
    "distributed_count": _("Over several machines a job takes %(count)s cards of kind %(kind)s on each."),
    "too_little_memory": _("No card gives so small a share %(asked_mib)s MiB; ask for more of it."),
    "too_many_on_a_node": _("%(asked)s cards per machine asked, the largest machine has %(best)s."),
    "too_many_nodes": _("%(asked)s machines asked, only %(nodes)s exist, and not all may be large enough."),
    "too_many_cpus": _("%(asked)s cores asked, the largest machine offers %(best)s CPU slots."),
    "no_such_model": _("No machine has a card %(model)s. Choose another type of device."),
    "image_driver": _(
        "No machine's driver is new enough for CUDA %(cuda)s of the image: it needs %(needed)s, the newest is"
        " %(newest)s. Choose another image, or run on the processor."
    ),
    "image_processor": _(
        "The image was built for processors of kind %(needed)s, the machines have %(there)s. Choose another image."
    ),
    "no_such_card": _("No machine has a card of this kind. Ask for 0 cards to run on the processor."),
}

#: The same where one is asked for.
OF_ONE = {
    "over_cluster_quota": _("%(asked)s card asked, %(cluster)s has %(limit)s."),
    "over_user_cards": _("%(asked)s card asked, %(cluster)s allows %(limit)s per person."),
    "over_cluster_cores": _("%(asked)s core asked, %(cluster)s has %(limit)s CPU slots."),
    "over_user_cores": _("%(asked)s core asked, %(cluster)s allows %(limit)s CPU slots per person."),
    "over_unowned_cards": _(
        "%(asked)s card asked, only %(limit)s are guaranteed to no cluster. Let it make room for others (preemptible),"
        " and it may borrow the rest."
    ),
    "over_unowned_cores": _(
        "%(asked)s core asked, only %(limit)s CPU slots are guaranteed to no cluster."
        " Let it make room for others (preemptible), and it may borrow the rest."
    ),
    "count_not_allowed": _("%(asked)s card asked; of kind %(kind)s a job takes %(allowed)s per machine."),
    "too_many_on_a_node": _("%(asked)s card per machine asked, the largest machine has %(best)s."),
    "too_many_cpus": _("%(asked)s core asked, the largest machine offers %(best)s CPU slots."),
}


def sentence(code: str, args: Mapping[str, object] | None = None) -> str:
    """The sentence for `code` in the reader's language; empty for an unknown or empty code."""
    text = OF_ONE.get(code) if (args or {}).get("asked") in (1, "1") else None
    text = text or SENTENCES.get(code)
    if text is None:
        return ""
    try:
        return str(text) % (args or {})
    except (KeyError, TypeError, ValueError):  # figures of another version: the words still help
        return str(text)
