from django.urls import path

from workers.clusters.views import clusters, members, resource_groups
from workers.jobs.views import actions, cluster_overview, jobs, more_time, priorities, queue, tasks
from workers.machines.views import machines, operating
from workers.monitoring.views import alarms, prometheus, usage
from workers.output import views as output

app_name = "workers"
urlpatterns = [
    path("queue/", queue.show, name="queue"),
    path("cluster/", machines.show, name="resources"),
    path("cluster/nodes/<int:pk>/", machines.node, name="node"),
    path("cluster/nodes/<int:pk>/do/<slug:verb>/", operating.act, name="node-act"),
    path("cluster/join/", operating.join, name="node-join"),
    path("cluster/join/tokens/<int:pk>/revoke/", operating.revoke, name="node-token-revoke"),
    path("alarms/", alarms.index, name="alarms"),
    path("alarms/<int:pk>/silence/", alarms.silence, name="alarm-silence"),
    path("alarms/silences/<int:pk>/end/", alarms.silence_end, name="alarm-silence-end"),
    path("alarms/rules/", alarms.rules, name="alarm-rules"),
    path("alarms/rules/<int:pk>/", alarms.rule, name="alarm-rule"),
    path("alarms/addresses/", alarms.addresses, name="alarm-addresses"),
    path("alarms/addresses/<int:pk>/", alarms.address, name="alarm-address"),
    path("alarms/addresses/<int:pk>/<slug:verb>/", alarms.address_do, name="alarm-address-do"),
    path("usage/", usage.show, name="usage"),
    path("metrics", prometheus.show, name="metrics"),
    path("tasks/", tasks.show, name="tasks"),
    path("tasks/stop/", tasks.stop, name="tasks-stop"),
    path("jobs/<int:pk>/", output.detail, name="job"),
    path("jobs/<int:pk>/header/", jobs.header, name="job-header"),
    path("jobs/<int:pk>/files/", output.outputs, name="job-files"),
    path("jobs/<int:pk>/events/", jobs.events, name="job-events"),
    path("jobs/<int:pk>/panels/<slug:name>/", jobs.panel, name="job-panel"),
    path("jobs/<int:pk>/priority/", actions.priority, name="job-priority"),
    path("jobs/<int:pk>/do/<slug:verb>/", actions.act, name="job-action"),
    path("clusters/", clusters.index, name="clusters"),
    path("clusters/new/", clusters.create, name="cluster-new"),
    path("clusters/<int:pk>/", cluster_overview.detail, name="cluster-detail"),
    path("clusters/<int:pk>/edit/", clusters.edit, name="cluster-edit"),
    path("clusters/<int:pk>/delete/", clusters.delete, name="cluster-delete"),
    path("clusters/<int:pk>/bounds/", clusters.edit_bounds, name="cluster-bounds"),
    path("resource-groups/", resource_groups.index, name="resource-groups"),
    path("resource-groups/new/", resource_groups.create, name="resource-group-new"),
    path("resource-groups/<int:pk>/", resource_groups.edit, name="resource-group"),
    path("resource-groups/<int:pk>/delete/", resource_groups.delete, name="resource-group-delete"),
    path("clusters/<int:pk>/priorities/", priorities.show, name="cluster-priorities"),
    path("clusters/<int:pk>/priorities/<int:job>/", priorities.put, name="cluster-priority"),
    path("clusters/<int:pk>/requests/", more_time.requests, name="cluster-requests"),
    path("time-requests/<int:pk>/answer/", more_time.answer, name="time-answer"),
    path("jobs/<int:pk>/more-time/", more_time.ask, name="job-more-time"),
    path("clusters/<int:pk>/members/", members.show, name="cluster-members"),
    path("clusters/<int:pk>/members/add/", members.add, name="cluster-members-add"),
    path("clusters/<int:pk>/members/<int:person>/remove/", members.remove, name="cluster-member-remove"),
    path("clusters/<int:pk>/members/<int:person>/charge/", members.put_in_charge, name="cluster-member-charge"),
    path("clusters/<int:pk>/groups/add/", members.add_group, name="cluster-group-add"),
    path("clusters/<int:pk>/groups/<int:group>/remove/", members.remove_group, name="cluster-group-remove"),
]
