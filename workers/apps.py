from typing import Any

from django.apps import AppConfig
from django.db.models.signals import m2m_changed, post_delete
from django.utils.translation import gettext_lazy as _

#: Acts of operators, for the audit trail.
VERBS = {
    "node_token_made": _("created a token for a node:"),
    "node_joined": _("joined the node:"),
    "node_drained": _("drained the node"),
    "node_evicts": _("allowed evictions on the node"),
    "node_evicts_not": _("forbade evictions on the node"),
    "node_mps": _("enabled MPS for GPU shares on node"),
    "node_mps_not": _("disabled MPS for GPU shares on node"),
    "node_undrained": _("resumed scheduling on the node"),
    "node_removed": _("removed the node"),
    "resource_group_made": _("reserved nodes for kinds of jobs:"),
    "resource_group_changed": _("changed the resource group"),
    "resource_group_deleted": _("deleted the resource group"),
    "time_granted": _("granted more time to"),
    "time_denied": _("denied more time to"),
    "job_approved": _("approved the start of"),
    "job_refused": _("denied the start of"),
    "cluster_made": _("created the cluster"),
    "cluster_changed": _("changed the cluster"),
    "cluster_deleted": _("deleted the cluster"),
    "cluster_bounds_changed": _("changed the job limits of the cluster"),
    "cluster_member_added": _("added %(object)s to the cluster %(cluster)s"),
    "cluster_member_removed": _("removed %(object)s from the cluster %(cluster)s"),
    "cluster_group_added": _("added the group %(object)s to the cluster %(cluster)s"),
    "cluster_group_removed": _("removed the group %(object)s from the cluster %(cluster)s"),
    "cluster_administrator_made": _("made %(object)s an administrator of the cluster %(cluster)s"),
    "cluster_administrator_unmade": _("removed %(object)s as administrator of the cluster %(cluster)s"),
    "jobs_stopped": _("stopped the jobs"),
    "job_forced": _("forced the end of the job"),
    "alarm_rule_changed": _("changed the alert rule"),
    "alarm_address_saved": _("saved the alert address"),
    "alarm_address_removed": _("removed the alert address"),
    "alarm_silenced": _("silenced the alert rule"),
    "alarm_silence_ended": _("ended the silence of the alert rule"),
    "all_alarms_silenced": _("silenced all alerts"),
    "all_alarms_silence_ended": _("ended the silence of all alerts"),
}
#: The same of users on their own account.
OWN_VERBS = {
    "cluster_member_added": _("added their own account to the cluster %(cluster)s"),
    "cluster_member_removed": _("removed their own account from the cluster %(cluster)s"),
    "cluster_administrator_made": _("made their own account an administrator of the cluster %(cluster)s"),
    "cluster_administrator_unmade": _("removed their own account as administrator of the cluster %(cluster)s"),
}


class WorkersConfig(AppConfig):
    name = "workers"
    verbose_name = _("Nodes and jobs")

    def ready(self) -> None:
        from accounts.access import ownership
        from accounts.presentation import audit_facts, audit_sentences
        from accounts.services import audit
        from aiplatform.frame import badges
        from aiplatform.frame import navigation as side_bar
        from aiplatform.lib import palette, search, sweeps
        from aiplatform.pages.home import approvals as home_approvals
        from aiplatform.pages.home import sections as home_sections
        from workers import messages
        from workers.core import kinds
        from workers.core.models import Job, JobArray, Node, ResourceGroup, Severity, VirtualCluster
        from workers.execution import reservations
        from workers.jobs import account_deletion, job_page, navigation, panels, searching
        from workers.jobs import home as jobs_home
        from workers.jobs.output import causes, device_errors
        from workers.jobs.output.reporting import notes
        from workers.resources.clusters import home as quota_home
        from workers.resources.nodes import home as nodes_home

        audit.register_verbs(VERBS)
        audit.register_own_verbs(OWN_VERBS)
        audit_sentences.register(
            audit_sentences.Page(Job, "workers:job"),
            audit_sentences.Page(Node, "workers:node"),
            audit_sentences.Page(ResourceGroup, "workers:resource-group"),
            audit_sentences.Page(VirtualCluster, "workers:cluster-detail"),
        )
        for fact in ("severity", "least"):
            audit_facts.register_values(fact, dict(Severity.choices))
        follow_groups()
        messages.register()
        kinds.register(reservations.ReservationKind())
        reservations.register_pins()
        ownership.register(
            ownership.Owned("jobs", _("Jobs and their results"), Job, named=False),
            ownership.Owned("job_arrays", _("Job arrays"), JobArray, named=False),
        )
        ownership.register_work(account_deletion.stop_all)
        causes.register()
        notes.register()
        for panel in (*panels.PANELS, causes.PANEL, causes.SLOW_PANEL, device_errors.PANEL):
            job_page.PANELS.register(panel)
        sweeps.register("workers.hand_over_sweep")
        search.register_many(searching.kinds_of_jobs)
        palette.register_on_objects(*searching.JOB_COMMANDS)
        side_bar.register(navigation.tabs_of_kinds, navigation.tabs)
        badges.register(*navigation.BADGES)
        home_sections.SECTIONS.register(nodes_home.ALARMS, nodes_home.COUNTS, nodes_home.NODES, nodes_home.CLUSTER)
        home_sections.SECTIONS.register(jobs_home.JOBS, jobs_home.ENDED, quota_home.QUOTA)
        home_approvals.SOURCES.register(jobs_home.APPROVALS, jobs_home.TIME_REQUESTS)


def follow_groups() -> None:
    """Who joins a user group belongs to the group's clusters from then on, who leaves it no longer does."""
    from accounts.models import User, UserGroup
    from workers.resources.clusters import members

    def changed(action: str, **_given: Any) -> None:
        if action in {"post_add", "post_remove", "post_clear"}:
            members.sync_groups()

    def deleted(**_given: Any) -> None:
        members.sync_groups()

    m2m_changed.connect(changed, User.user_groups.through, weak=False, dispatch_uid="workers.follow_groups")
    post_delete.connect(deleted, UserGroup, weak=False, dispatch_uid="workers.forget_group")
