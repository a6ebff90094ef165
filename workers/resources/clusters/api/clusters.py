"""`/api/v1/clusters/`: virtual clusters, their bounds and members."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib import queries
from aiplatform.lib.api import OldestFirstPagination, parse_request
from aiplatform.objects.filters import ObjectFilters, Words
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet
from workers.core.models import VirtualCluster
from workers.planning.planner.snapshot import Quota
from workers.resources.clusters import bounds, cluster_use, clusters, members, quotas
from workers.resources.clusters.api.serializers import (
    BoundsSerializer,
    ClusterIn,
    ClusterOut,
    ClusterUseOut,
    KindOut,
    MemberIn,
    MembersOut,
)

#: What `clusters.save` sets; a request that changes a cluster may leave each of them out.
COLUMNS = (
    "name", "jobs_per_user", "environments_per_user", "max_runtime", "max_pause", "default_disk_bytes",
    "max_disk_bytes", "approves_environments",
)  # fmt: skip


class ClusterFilters(ObjectFilters):
    search = Words("name")


class ClusterViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    """Virtual clusters: the caller's own, and all of them for administrators."""

    view_permission, change_permission = Action.JOBS_VIEW, Action.CLUSTER_MANAGE
    needs = {
        **dict.fromkeys(("bounds", "use"), Action.JOBS_VIEW),
        **dict.fromkeys(("members", "add_member", "remove_member"), Action.CLUSTER_ADMINISTER),
        "current": Action.SELF_MANAGE,
    }
    asks = {"remove_member": ("user", "group")}
    serializer_class, create_serializer_class = ClusterOut, ClusterIn
    filters = ClusterFilters
    reach = dict.fromkeys(("members", "add_member", "remove_member"), "administered_by")
    pagination_class = OldestFirstPagination

    def get_input_serializer(self, **options: Any) -> Any:
        return ClusterIn(partial=self.action == "partial_update", **options)

    def service_check(self) -> Any:
        cluster = self.get_object() if self.action == "partial_update" else None
        return partial(clusters.check_name, cluster=cluster)

    def create_object(self, **values: Any) -> VirtualCluster:
        return clusters.save(None, **_settings(values), by=self.request.user)

    def change_object(self, cluster: VirtualCluster, **values: Any) -> None:
        """Change name or limits; what is left out stays."""
        current = {name: getattr(cluster, name) for name in COLUMNS}
        clusters.save(cluster, **current | _settings(values), by=self.request.user)

    def delete_object(self, cluster: VirtualCluster) -> None:
        """Delete an unused cluster; jobs that ended there still show its name."""
        clusters.delete(cluster, by=self.request.user)

    @extend_schema(responses=KindOut(many=True))
    @action(detail=False, pagination_class=None)
    def kinds(self, request: Request) -> Response:
        """The kinds of devices that the nodes have: how many, and how many are not guaranteed to any cluster."""
        return Response(KindOut(quotas.detect(), many=True).data)

    @extend_schema(responses=BoundsSerializer(many=True))
    @action(detail=True, pagination_class=None)
    def bounds(self, request: Request, pk: str) -> Response:
        """Least and most cores and memory (MiB) of one job per node, by device kind."""
        return Response(_bounds(self.get_object()))

    @extend_schema(request=BoundsSerializer, responses=BoundsSerializer(many=True))
    @bounds.mapping.put
    def set_bounds(self, request: Request, pk: str) -> Response:
        """Change the bounds of one device kind; counts from the next job that is submitted."""
        user: Any = request.user
        cluster = self.get_object()
        values = parse_request(BoundsSerializer(data=request.data))
        bounds.set_bounds(cluster, values.pop("kind"), bounds.Bounds(**values), by=user)
        return Response(_bounds(cluster))

    @extend_schema(responses=MembersOut)
    @action(detail=True)
    def members(self, request: Request, pk: str) -> Response:
        """Who belongs to the cluster: {"people": […], "groups": [names]}."""
        return Response(_members(self.get_object()))

    @extend_schema(request=MemberIn, responses={201: MembersOut})
    @members.mapping.post
    def add_member(self, request: Request, pk: str) -> Response:
        """Let a person or a group in; a group brings everybody who is or will be in it."""
        by: Any = request.user
        cluster = self.get_object()
        values = parse_request(MemberIn(data=request.data))
        person, group = members.find(**_who(values))
        charge = values["administers"]
        if charge is not None:
            by.require(Action.CLUSTER_MANAGE)
        if group is not None:
            members.add_group(cluster, group, by=by)
        if person is not None:
            members.add(cluster, [person], by=by)
            if charge is not None:
                members.set_administrator(cluster, person, on=charge, by=by)
        return Response(_members(cluster), status=201)

    @extend_schema(responses={204: None})
    @members.mapping.delete
    def remove_member(self, request: Request, pk: str) -> Response:
        """Take out `?user=` or `?group=`; refused while they have jobs there that have not ended."""
        by: Any = request.user
        cluster = self.get_object()
        person, group = members.find(**_who(queries.read_filters(request)))
        if person is not None:
            if not cluster.memberships.filter(user=person).exists():
                raise Http404
            members.remove(cluster, person, by=by)
        if group is not None:
            if not cluster.group_links.filter(group=group).exists():
                raise Http404
            members.remove_group(cluster, group, by=by)
        return Response(status=204)

    @extend_schema(request=None, responses=ClusterOut)
    @action(detail=True, methods=["post"])
    def current(self, request: Request, pk: str) -> Response:
        """Make this the cluster that the caller's new jobs take by default."""
        user: Any = request.user
        cluster = self.get_object()
        if not cluster.memberships.filter(user=user).exists():
            raise Http404
        members.switch(user, cluster)
        return Response(ClusterOut(cluster).data)

    @extend_schema(responses=ClusterUseOut)
    @action(detail=True)
    def use(self, request: Request, pk: str) -> Response:
        """What the cluster uses now: {"devices": own, borrowed, lent, free cards by kind; "people": who has what}."""
        cluster = self.get_object()
        use = {"devices": cluster_use.by_kind(cluster), "people": cluster_use.people(cluster)}
        return Response(ClusterUseOut(use).data)


def _settings(values: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `clusters.save` for the fields of a request."""
    for name in ("max_runtime", "max_pause"):
        if f"{name}_s" in values:
            span = values.pop(f"{name}_s")
            values[name] = timedelta(seconds=span) if span is not None else None
    if "devices" in values:
        values["devices"] = {
            row["kind"]: Quota(row.get("guaranteed"), row.get("borrows", False), row.get("per_user"))
            for row in values["devices"]
        }
    return values


def _bounds(cluster: VirtualCluster) -> Any:
    rows = [{"kind": kind} | vars(bounds) for kind, _label, bounds in bounds.bounds_of_kinds(cluster)]
    return BoundsSerializer(rows, many=True).data


def _members(cluster: VirtualCluster) -> dict[str, Any]:
    people = cluster.memberships.select_related("user").order_by("user__username")
    groups = cluster.group_links.order_by("group__name").values_list("group__name", flat=True)
    return dict(MembersOut({"people": people, "groups": groups}).data)


def _who(values: Any) -> dict[str, str]:
    return {"username": values.get("user") or "", "group": values.get("group") or ""}
