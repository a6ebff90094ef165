"""Django settings. What differs between installations is read in env.py."""

from __future__ import annotations

import sys
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import dj_database_url
from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from aiplatform import env
from aiplatform.lib import installation_secrets, problems, process_startup
from aiplatform.lib.admin_theme import UNFOLD  # noqa: F401 - a setting

process_startup.begins()


def _packaged(package: str) -> Path:
    """Return the folder of an installed package without importing it."""
    spec = find_spec(package)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else Path()


BASE_DIR = env.BASE_DIR
DATA_ROOT: Path = env.DATA_ROOT
RUN_DIR: Path = env.RUN_DIR
NODE = env.NODE

DEBUG = env.DEBUG
SECRET_KEY = env.SECRET_KEY or installation_secrets.load_or_create(RUN_DIR / "secret_key")
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", env.NODE, *env.ALLOWED_HOSTS]
if env.HOST not in {"127.0.0.1", "localhost", "::1"}:
    ALLOWED_HOSTS.append("*" if env.HOST == "0.0.0.0" and not env.ALLOWED_HOSTS else env.HOST)  # noqa: S104 - compared, not bound

INSTALLED_APPS = [
    "accounts",  # before admin: its templates and user model come first
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "guardian",
    "axes",
    "csp",
    "aiplatform",
    "datasets",
    "annotation",
    "workers",
    "workers.images",
    "workers.access.proxy",
    "workers.access.ssh",
    "training",
    "training.commands",
    "training.experiments.boards",
    "datasets.files",
    "training.job_templates",
    "training.environments",
    "training.experiments",
    "training.experiments.reports",
    "training.studies",
    "training.experiments.tracking",
    "inference",
    "inference.pipelines",
    "aiplatform.pages.sample",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "aiplatform.lib.static_files.StaticMiddleware",
    "aiplatform.lib.http.RequestIdMiddleware",
    "aiplatform.lib.http.PrivateMiddleware",
    "aiplatform.lib.compression.CompressionMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "aiplatform.lib.http.StorableTextMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "accounts.sign_in.middleware.TakeOverMiddleware",
    "accounts.sign_in.middleware.OriginMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "aiplatform.lib.pages.RefusalMiddleware",
    "accounts.sign_in.middleware.PreferencesMiddleware",
    "accounts.sign_in.middleware.FirstPasswordMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "aiplatform.urls"
ASGI_APPLICATION = "aiplatform.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "aiplatform.lib.templates.Loader",
                    [
                        "django.template.loaders.filesystem.Loader",
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ],
            "builtins": ["aiplatform.templatetags.addresses"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
                "aiplatform.frame.context.frame",
            ],
        },
    }
]

FORM_RENDERER = "aiplatform.lib.widgets.Renderer"

# --- database: SQLite tuned for many writers on one machine, PostgreSQL for several nodes
if env.DATABASE_URL:
    DATABASES = {"default": dj_database_url.parse(env.DATABASE_URL, conn_max_age=60, conn_health_checks=True)}
    if DATABASES["default"]["ENGINE"].endswith("postgresql"):
        # A cable that is cut says nothing: without these a node would wait for a quarter of an hour after it is mended,
        # and the server would keep the locks of a machine that is gone.
        DATABASES["default"]["OPTIONS"] = {
            "connect_timeout": 10,
            "tcp_user_timeout": 8000,
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "options": "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
            " -c tcp_user_timeout=20000 -c idle_in_transaction_session_timeout=60s -c lock_timeout=20s",
            **DATABASES["default"].get("OPTIONS", {}),
        }
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(DATA_ROOT / "aiplatform.sqlite3"),
            "CONN_MAX_AGE": 60,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
            },
        }
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- broker, cache, channel layer: one Redis-compatible server
BROKER_SOCKET = RUN_DIR / "valkey.sock"
BROKER_PASSWORD_FILE = RUN_DIR / "broker_password"


def _redis_url(database: int) -> str:
    if env.REDIS_URL:
        base = env.REDIS_URL.rstrip("/")
        head, _slash, tail = base.rpartition("/")
        return f"{head if tail.isdigit() else base}/{database}"
    password = quote(installation_secrets.load_or_create(BROKER_PASSWORD_FILE), safe="")
    return f"unix://:{password}@{BROKER_SOCKET}?db={database}"


REDIS_URL = _redis_url(0)
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": _redis_url(1),
        "OPTIONS": {
            "socket_timeout": 2,
            "socket_connect_timeout": 1,
            "serializer": "aiplatform.lib.plain_cache.PlainSerializer",
        },
    }
}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # socket_timeout None: redis-py's own time-out would cut idle WebSockets.
        "CONFIG": {"hosts": [{"address": _redis_url(2), "socket_timeout": None}]},
    }
}
if env.REDIS_URL:
    CELERY_BROKER_URL = REDIS_URL
else:  # Celery spells a socket's address its own way
    _password = quote(installation_secrets.load_or_create(BROKER_PASSWORD_FILE), safe="")
    CELERY_BROKER_URL = f"redis+socket://:{_password}@{BROKER_SOCKET}?virtual_host=0"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 2, "socket_connect_timeout": 1, "max_retries": 1}
CELERY_WORKER_CONSUMER = "aiplatform.lib.celery_worker:Consumer"
CELERY_WORKER_AUTOSCALER = "aiplatform.lib.celery_worker:PoolScaler"
CELERY_DB_REUSE_MAX = sys.maxsize  # aiplatform/lib/celery_worker.py closes old connections
CELERY_TASK_PUBLISH_RETRY = False  # a sweep reads the same rows; a request never waits for the broker
CELERY_TASK_DEFAULT_QUEUE = f"{NODE}.work"  # starts of jobs have queues of their own, see workers/core/queues.py

# --- people
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
GUARDIAN_GET_INIT_ANONYMOUS_USER = None
ANONYMOUS_USER_NAME = None
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 8}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "accounts:login"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True  # cookies know no ports: a page of a job, on the same host, would read it
if env.BASE_URL.startswith("https://"):
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"
    CSRF_TRUSTED_ORIGINS = [env.BASE_URL]
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
AXES_HANDLER = "accounts.sign_in.lockout.Handler"
AXES_LOCKOUT_CALLABLE = "accounts.sign_in.lockout.answer"
AXES_FAILURE_LIMIT = 6  # of one name from one address: the sixth mistake begins the pause
FAILURES_PER_ADDRESS = 30  # of all names from one address
AXES_COOLOFF_TIME = timedelta(minutes=3)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_ENABLE_ACCESS_FAILURE_LOG = False
AXES_DISABLE_ACCESS_LOG = True
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_HTTP_RESPONSE_CODE = 429
AXES_ENABLE_ADMIN = False
REGISTRATION_OPEN = env.REGISTRATION
OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET = env.OIDC_ISSUER, env.OIDC_CLIENT_ID, env.OIDC_CLIENT_SECRET
OIDC_NAME, OIDC_SCOPES, OIDC_USERNAME_CLAIM = env.OIDC_NAME, env.OIDC_SCOPES, env.OIDC_USERNAME_CLAIM
OIDC_LINK_BY_EMAIL, OIDC_ROLE_CLAIM, OIDC_ROLES = env.OIDC_LINK_BY_EMAIL, env.OIDC_ROLE_CLAIM, env.OIDC_ROLES
LDAP_URL, LDAP_SECURITY, LDAP_CA, LDAP_BASE = env.LDAP_URL, env.LDAP_SECURITY, env.LDAP_CA, env.LDAP_BASE
LDAP_BIND_DN, LDAP_BIND_PASSWORD, LDAP_FILTER = env.LDAP_BIND_DN, env.LDAP_BIND_PASSWORD, env.LDAP_FILTER
LDAP_NAME_ATTRIBUTE, LDAP_ID_ATTRIBUTE = env.LDAP_NAME_ATTRIBUTE, env.LDAP_ID_ATTRIBUTE
LDAP_ROLES, LDAP_LINK_BY_NAME = env.LDAP_ROLES, env.LDAP_LINK_BY_NAME
if LDAP_URL:  # after the platform's own passwords, behind the same counter of failures
    AUTHENTICATION_BACKENDS.append("accounts.sign_in.backends.DirectoryBackend")
AUDIT_GUARDED = True  # triggers refuse to change or delete entries of the audit trail

# --- what leaves the platform: mail and webhooks, see accounts/services/outbox.py
EMAIL_HOST, EMAIL_PORT = env.SMTP_HOST, env.SMTP_PORT
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = env.SMTP_USER, env.SMTP_PASSWORD
EMAIL_USE_TLS, EMAIL_USE_SSL = env.SMTP_SECURITY == "starttls", env.SMTP_SECURITY == "tls"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.MAIL_FROM
WEBHOOK_ALLOWED = env.WEBHOOK_ALLOWED
STREAM_ALLOWED = env.STREAM_ALLOWED
PUSH_ALLOWED = env.PUSH_ALLOWED
METRICS_TOKEN = env.METRICS_TOKEN
SITE_URL = (env.BASE_URL or f"http://{'127.0.0.1' if env.HOST == '0.0.0.0' else env.HOST}:{env.PORT}").rstrip("/")  # noqa: S104 - compared, not bound

# --- ports of jobs, on an origin of their own, see workers/access/proxy
PORTS_PORT, PORTS_HOST = env.PORTS_PORT, env.PORTS_HOST
PORTS_PATIENCE_S = 10.0  # for which a person who opens a port waits for its web server, where that was just started

# --- pages
LANGUAGE_CODE = env.LANGUAGE
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "aiplatform" / "locale"]
USE_TZ = True
TIME_ZONE = env.TIME_ZONE
STATIC_URL = "/static/"
STATICFILES_DIRS = [("uplot", _packaged("uplot") / "static")]  # charts: the library's own files, unchanged
STATIC_ROOT = None  # nothing is collected: see aiplatform/lib/static_files.py
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 0 if DEBUG else 300  # of addresses without a fingerprint
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "aiplatform.lib.static_files.FingerprintedStorage"},
}
CONTENT_SECURITY_POLICY = {
    "EXCLUDE_URL_PREFIXES": ["/admin/"],  # unfold's Alpine needs eval; admin is for operators only
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "frame-ancestors": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
    },
}
CSRF_FAILURE_VIEW = "aiplatform.pages.views.csrf_failed"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 20 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000

# --- API
REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "aiplatform.lib.api.exception_handler",
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.sign_in.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_FILTER_BACKENDS": [],
    "DEFAULT_SCHEMA_CLASS": "aiplatform.lib.schema.PlatformSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "aiplatform.lib.parsers.CarefulJSONParser",
        "aiplatform.lib.parsers.CarefulMultiPartParser",
    ],
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "aiplatform",
    "DESCRIPTION": _("From raw images to a deployed model."),
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "COMPONENT_SPLIT_REQUEST": True,
    "APPEND_COMPONENTS": problems.COMPONENTS,
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "aiplatform.frame.api_tags.tag_paths"],
    "ENUM_NAME_OVERRIDES": {
        "ImageSourceEnum": "workers.images.models.Image.Source",
        "DeviceKindEnum": "workers.core.models.Device.Kind",
        "JobStateEnum": "workers.core.states.JobState",
        "NoticeKindEnum": "accounts.services.notify.KINDS.names",
        "PipelineTriggerKindEnum": "inference.pipelines.models.PipelineTrigger.Kind",
        "PipelineRunStateEnum": "inference.pipelines.models.PipelineRun.State",
        "SeverityEnum": "workers.core.models.Severity",
        "StageEnum": "inference.registry.models.Stage",
        "StudyStateEnum": "training.studies.models.Study.State",
        "UsableByEnum": "inference.delivery.push.models.UsableBy",
        "VisibilityEnum": "datasets.models.Dataset.Visibility",
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "aiplatform.lib.log_lines.OneLine", "format": "%(asctime)s %(levelname)s %(name)s %(message)s"}
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.LOG_LEVEL},
    "loggers": {"axes": {"level": "WARNING"}, "django.request": {"level": "ERROR"}},
}
