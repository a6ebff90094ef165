"""Pages under /models/, /evaluations/, /conversions/, /predictions/, /edge/, /push/, /videos/ and /services/."""

from django.urls import path

from inference.batch import views as batch
from inference.conversion import views as conversion
from inference.delivery.edge import device_api as edge_devices
from inference.delivery.edge import sample_views as edge_samples
from inference.delivery.edge import views as edge
from inference.delivery.push import views as push
from inference.evaluation import comparison_views, promotion_views, slice_views
from inference.evaluation import views as evaluations
from inference.evaluation.parameter_sets import views as evaluation_sets
from inference.registry import import_views as importing
from inference.registry import version_views
from inference.registry import views as models
from inference.registry.composition import views as composing
from inference.registry.import_trials import views as trying
from inference.registry.torch_export import views as torch_export
from inference.serving import views as services
from inference.serving.feedback import views as feedback
from inference.serving.keys import views as keys
from inference.serving.monitoring import views as monitoring
from inference.serving.traffic import views as traffic
from inference.video import views as video

app_name = "inference"
urlpatterns = [
    *models.ModelPages.urls(),
    path("models/new/", models.model_upload, name="model-upload"),
    path("models/imports/<int:pk>/", importing.model_import, name="model-import"),
    path("models/imports/<int:pk>/details/", importing.import_details, name="import-details"),
    path("models/imports/<int:pk>/try/", importing.import_try, name="import-try"),
    path("models/imports/<int:pk>/confirm/", importing.import_confirm, name="import-confirm"),
    path("models/imports/<int:pk>/discard/", importing.import_discard, name="import-discard"),
    path("models/compose/", composing.model_compose, name="model-compose"),
    path("models/compare/", comparison_views.compare_models, name="models-compare"),
    path("models/<int:pk>/", models.model_detail, name="model-detail"),
    path("models/<int:pk>/versions/", models.version_upload, name="version-upload"),
    path("models/<int:pk>/all/", version_views.model_versions, name="model-versions"),
    path("models/<int:pk>/lineage/", version_views.model_lineage, name="model-lineage"),
    path("models/<int:pk>/rules/", promotion_views.model_rules, name="model-rules"),
    path("models/<int:pk>/rules/new/", promotion_views.model_rule_new, name="model-rule-new"),
    path("models/<int:pk>/rules/remove/", promotion_views.model_rule_remove, name="model-rule-remove"),
    path("models/<int:pk>/history/", version_views.model_history, name="model-history"),
    path("models/<int:pk>/card/", version_views.model_card, name="model-card"),
    path("models/<int:pk>/alias/", version_views.model_alias, name="model-alias"),
    path("models/<int:pk>/alias/remove/", version_views.model_alias_remove, name="model-alias-remove"),
    path("models/tries/<int:pk>/use/", trying.trial_use, name="trial-use"),
    path("models/tries/<int:pk>/pictures/<int:place>/", trying.trial_picture, name="trial-picture"),
    path("models/versions/<int:pk>/stage/", version_views.version_stage, name="version-stage"),
    path("models/versions/<int:pk>/speed/", models.version_speed, name="version-speed"),
    path("models/versions/<int:pk>/measure/", models.version_measure, name="version-measure"),
    path("models/versions/<int:pk>/download/", models.version_download, name="version-download"),
    path("models/versions/<int:pk>/package/", models.version_package, name="version-package"),
    path("models/versions/<int:pk>/torch/", torch_export.version_torch, name="version-torch"),
    path("models/versions/<int:pk>/torch/export/", torch_export.version_torch_export, name="version-torch-export"),
    path("models/versions/<int:pk>/push/", push.version_push, name="version-push"),
    path("models/versions/<int:pk>/pushes/", push.version_pushes, name="version-pushes"),
    path("models/versions/<int:pk>/delete/", models.version_delete, name="version-delete"),
    *evaluations.EvaluationPages.urls(),
    path("evaluations/compare/", comparison_views.compare, name="evaluation-compare"),
    path("evaluations/compare/images/", comparison_views.compared_images, name="evaluation-compared-images"),
    path("evaluations/compare/slices/", slice_views.compared_slices, name="evaluation-compared-slices"),
    *evaluation_sets.EvaluationSetPages.urls(),
    path("evaluations/<int:pk>/slices/", slice_views.evaluation_slices, name="evaluation-slices"),
    *conversion.ConversionPages.urls(),
    *edge.EdgeGroupPages.urls(),
    *edge.EdgeDevicePages.urls(),
    path("edge/aip-edge.pyz", edge_devices.agent, name="edge-agent"),
    path("edge/<int:pk>/samples/", edge_samples.sample_list, name="edge-samples"),
    path("edge/<int:pk>/samples/rule/", edge_samples.sample_rule, name="edge-sample-rule"),
    path("edge/<int:pk>/samples/<int:sample>/", edge_samples.sample_picture, name="edge-sample"),
    path("edge/<int:pk>/samples/<int:sample>/remove/", edge_samples.sample_remove, name="edge-sample-remove"),
    *push.PushTargetPages.urls(),
    path("push/pushes/<int:pk>/stop/", push.push_stop, name="push-stop"),
    path("push/pushes/<int:pk>/again/", push.push_again, name="push-again"),
    *batch.PredictionPages.urls(),
    *video.VideoPages.urls(),
    *video.VideoFilePages.urls(),
    *services.ServicePages.urls(),
    path("services/<int:pk>/usage/", traffic.service_usage, name="service-usage"),
    path("services/<int:pk>/monitoring/", monitoring.monitoring, name="service-monitoring"),
    path("services/<int:pk>/monitoring/baseline/", monitoring.baseline, name="service-baseline"),
    path("services/<int:pk>/keys/", keys.key_list, name="service-keys"),
    path("services/<int:pk>/keys/<int:key>/revoke/", keys.key_revoke, name="service-key-revoke"),
    path("services/<int:pk>/samples/", feedback.sample_list, name="service-samples"),
    path("services/<int:pk>/samples/<int:sample>/", feedback.sample_picture, name="service-sample"),
    path("services/<int:pk>/samples/<int:sample>/remove/", feedback.sample_remove, name="service-sample-remove"),
    path("services/<int:pk>/trial/", traffic.trial_new, name="service-trial"),
    path("services/<int:pk>/trial/part/", traffic.trial_part, name="service-trial-part"),
    path("services/<int:pk>/trial/promote/", traffic.trial_promote, name="service-trial-promote"),
    path("services/<int:pk>/trial/roll-back/", traffic.trial_roll_back, name="service-trial-roll-back"),
]
