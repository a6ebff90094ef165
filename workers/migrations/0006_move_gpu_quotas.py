"""Cards a cluster may use, and cards per person, become its quota of GPUs."""

from django.db import migrations


def move(apps, schema_editor):
    ClusterDevice = apps.get_model("workers", "ClusterDevice")
    for cluster in apps.get_model("workers", "VirtualCluster").objects.all():
        if cluster.gpu_quota is not None or cluster.gpus_per_user is not None:
            ClusterDevice.objects.update_or_create(
                cluster=cluster,
                kind="gpu",
                defaults={"guaranteed": cluster.gpu_quota, "per_user": cluster.gpus_per_user},
            )


def back(apps, schema_editor):
    for row in apps.get_model("workers", "ClusterDevice").objects.filter(kind="gpu").select_related("cluster"):
        row.cluster.gpu_quota, row.cluster.gpus_per_user = row.guaranteed, row.per_user
        row.cluster.save()


class Migration(migrations.Migration):
    dependencies = [("workers", "0005_cluster_quotas_and_bounds")]
    operations = [migrations.RunPython(move, back)]
