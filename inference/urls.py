"""Pages under /models/, /evaluations/ and /services/."""

from django.urls import path

from inference.views import comparing, evaluations, models, registry, services

app_name = "inference"
urlpatterns = [
    path("models/", models.model_list, name="model-list"),
    path("models/new/", models.model_upload, name="model-upload"),
    path("models/<int:pk>/", models.model_detail, name="model-detail"),
    path("models/<int:pk>/edit/", models.model_edit, name="model-edit"),
    path("models/<int:pk>/versions/", models.version_upload, name="version-upload"),
    path("models/<int:pk>/delete/", models.model_delete, name="model-delete"),
    path("models/<int:pk>/all/", registry.model_versions, name="model-versions"),
    path("models/<int:pk>/lineage/", registry.model_lineage, name="model-lineage"),
    path("models/<int:pk>/rules/", registry.model_rules, name="model-rules"),
    path("models/<int:pk>/rules/new/", registry.model_rule_new, name="model-rule-new"),
    path("models/<int:pk>/rules/remove/", registry.model_rule_remove, name="model-rule-remove"),
    path("models/<int:pk>/history/", registry.model_history, name="model-history"),
    path("models/<int:pk>/card/", registry.model_card, name="model-card"),
    path("models/<int:pk>/alias/", registry.model_alias, name="model-alias"),
    path("models/<int:pk>/alias/remove/", registry.model_alias_remove, name="model-alias-remove"),
    path("models/versions/<int:pk>/stage/", registry.version_stage, name="version-stage"),
    path("models/versions/<int:pk>/speed/", models.version_speed, name="version-speed"),
    path("models/versions/<int:pk>/measure/", models.version_measure, name="version-measure"),
    path("models/versions/<int:pk>/download/", models.version_download, name="version-download"),
    path("models/versions/<int:pk>/package/", models.version_package, name="version-package"),
    path("models/versions/<int:pk>/delete/", models.version_delete, name="version-delete"),
    path("evaluations/", evaluations.evaluation_list, name="evaluation-list"),
    path("evaluations/new/", evaluations.evaluation_new, name="evaluation-new"),
    path("evaluations/compare/", comparing.compare, name="evaluation-compare"),
    path("evaluations/compare/images/", comparing.compared_images, name="evaluation-compared-images"),
    path("evaluations/fit/", evaluations.evaluation_fit, name="evaluation-fit"),
    path("evaluations/<int:pk>/", evaluations.evaluation_detail, name="evaluation-detail"),
    path("evaluations/<int:pk>/images/", evaluations.evaluation_images, name="evaluation-images"),
    path("evaluations/<int:pk>/image/<path:path>", evaluations.evaluation_image, name="evaluation-image"),
    path("evaluations/<int:pk>/stop/", evaluations.evaluation_stop, name="evaluation-stop"),
    path("evaluations/<int:pk>/download/", evaluations.evaluation_download, name="evaluation-download"),
    path("services/", services.service_list, name="service-list"),
    path("services/new/", services.service_new, name="service-new"),
    path("services/fit/", services.service_fit, name="service-fit"),
    path("services/<int:pk>/", services.service_detail, name="service-detail"),
    path("services/<int:pk>/edit/", services.service_edit, name="service-edit"),
    path("services/<int:pk>/start/", services.service_start, name="service-start"),
    path("services/<int:pk>/stop/", services.service_stop, name="service-stop"),
    path("services/<int:pk>/delete/", services.service_delete, name="service-delete"),
]
