"""Pages under /models/, /evaluations/, /conversions/, /predictions/, /edge/, /push/, /videos/ and /services/."""

from django.urls import path

from inference.batch import views as batch
from inference.conversion import views as conversion
from inference.delivery.edge import device_api as edge_devices
from inference.delivery.edge import sample_views as edge_samples
from inference.delivery.edge import views as edge
from inference.delivery.push import views as push
from inference.evaluation import comparison_views, promotion_views, result_views, slice_views
from inference.evaluation import views as evaluations
from inference.evaluation.parameter_sets import views as evaluation_sets
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
    path("models/", models.model_list, name="model-list"),
    path("models/new/", models.model_upload, name="model-upload"),
    path("models/compose/", composing.model_compose, name="model-compose"),
    path("models/<int:pk>/", models.model_detail, name="model-detail"),
    path("models/<int:pk>/edit/", models.model_edit, name="model-edit"),
    path("models/<int:pk>/versions/", models.version_upload, name="version-upload"),
    path("models/<int:pk>/delete/", models.model_delete, name="model-delete"),
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
    path("evaluations/", evaluations.evaluation_list, name="evaluation-list"),
    path("evaluations/new/", evaluations.evaluation_new, name="evaluation-new"),
    path("evaluations/compare/", comparison_views.compare, name="evaluation-compare"),
    path("evaluations/compare/images/", comparison_views.compared_images, name="evaluation-compared-images"),
    path("evaluations/compare/slices/", slice_views.compared_slices, name="evaluation-compared-slices"),
    path("evaluations/fit/", evaluations.evaluation_fit, name="evaluation-fit"),
    path("evaluations/sets/", evaluation_sets.set_list, name="evaluation-sets"),
    path("evaluations/sets/new/", evaluation_sets.set_new, name="evaluation-set-new"),
    path("evaluations/sets/<int:pk>/", evaluation_sets.set_detail, name="evaluation-set"),
    path("evaluations/sets/<int:pk>/edit/", evaluation_sets.set_edit, name="evaluation-set-edit"),
    path("evaluations/sets/<int:pk>/delete/", evaluation_sets.set_delete, name="evaluation-set-delete"),
    path("evaluations/<int:pk>/", evaluations.evaluation_detail, name="evaluation-detail"),
    path("evaluations/<int:pk>/images/", evaluations.evaluation_images, name="evaluation-images"),
    path("evaluations/<int:pk>/image/<path:path>", evaluations.evaluation_image, name="evaluation-image"),
    path("evaluations/<int:pk>/report/", result_views.evaluation_report, name="evaluation-report"),
    path("evaluations/<int:pk>/calibration/", result_views.evaluation_calibration, name="evaluation-calibration"),
    path("evaluations/<int:pk>/threshold/", result_views.evaluation_threshold, name="evaluation-threshold"),
    path("evaluations/<int:pk>/annotate/", result_views.evaluation_annotate, name="evaluation-annotate"),
    path("evaluations/<int:pk>/slices/", slice_views.evaluation_slices, name="evaluation-slices"),
    path("evaluations/<int:pk>/stop/", evaluations.evaluation_stop, name="evaluation-stop"),
    path("evaluations/<int:pk>/download/", evaluations.evaluation_download, name="evaluation-download"),
    *conversion.ConversionPages.urls(),
    path("conversions/new/", conversion.conversion_new, name="conversion-new"),
    path("conversions/fit/", conversion.conversion_fit, name="conversion-fit"),
    path("conversions/<int:pk>/", conversion.conversion_detail, name="conversion-detail"),
    path("conversions/<int:pk>/stop/", conversion.conversion_stop, name="conversion-stop"),
    path("conversions/<int:pk>/keep/<slug:target>/", conversion.conversion_keep, name="conversion-keep"),
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
    path("predictions/new/", batch.prediction_new, name="prediction-new"),
    path("predictions/fit/", batch.prediction_fit, name="prediction-fit"),
    path("predictions/<int:pk>/", batch.prediction_detail, name="prediction-detail"),
    path("predictions/<int:pk>/images/", batch.prediction_images, name="prediction-images"),
    path("predictions/<int:pk>/images/<int:place>/", batch.prediction_image, name="prediction-image"),
    path("predictions/<int:pk>/download/<slug:form>/", batch.prediction_download, name="prediction-download"),
    path("predictions/<int:pk>/version/", batch.prediction_version, name="prediction-version"),
    path("predictions/<int:pk>/stop/", batch.prediction_stop, name="prediction-stop"),
    *video.VideoPages.urls(),
    path("videos/new/", video.video_new, name="video-new"),
    path("videos/fit/", video.video_fit, name="video-fit"),
    *video.VideoFilePages.urls(),
    path("videos/<int:pk>/", video.video_detail, name="video-detail"),
    path("videos/<int:pk>/file/<str:name>", video.video_file, name="video-file"),
    path("videos/<int:pk>/events/<slug:kind>/", video.video_events, name="video-events"),
    path("videos/<int:pk>/stop/", video.video_stop, name="video-stop"),
    path("videos/<int:pk>/again/", video.video_again, name="video-again"),
    path("services/", services.service_list, name="service-list"),
    path("services/new/", services.service_new, name="service-new"),
    path("services/fit/", services.service_fit, name="service-fit"),
    path("services/<int:pk>/", services.service_detail, name="service-detail"),
    path("services/<int:pk>/edit/", services.service_edit, name="service-edit"),
    path("services/<int:pk>/model/", services.service_model, name="service-model"),
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
    path("services/<int:pk>/start/", services.service_start, name="service-start"),
    path("services/<int:pk>/stop/", services.service_stop, name="service-stop"),
    path("services/<int:pk>/delete/", services.service_delete, name="service-delete"),
]
