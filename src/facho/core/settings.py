"""Django's settings, derived from the environment and nothing else."""

import os
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from django.utils.translation import gettext_lazy as _

from facho.core.data_folder import DataFolder, KeyFile
from facho.core.database import BadDatabaseUrl, database_entry
from facho.core.env import Mode, count_cores, count_engines, problem_with, read_environment

ENVIRONMENT = read_environment(os.environ)
ENVIRONMENT_PROBLEMS = list(ENVIRONMENT.problems)
DATA_FOLDER = DataFolder.of(ENVIRONMENT)

FACHO_MODE: Mode = ENVIRONMENT["FACHO_MODE"]
FACHO_BIND: str = ENVIRONMENT["FACHO_BIND"]
FACHO_POLLERS: int = ENVIRONMENT["FACHO_POLLERS"]
FACHO_POLLER_GROUPS: dict[str, int] = ENVIRONMENT["FACHO_POLLER_GROUPS"]
FACHO_LEASE_SECONDS: float = ENVIRONMENT["FACHO_LEASE_SECONDS"]
FACHO_SOURCE_ADDRESS: str = ENVIRONMENT["FACHO_SOURCE_ADDRESS"]
FACHO_YIELD_SECONDS: float = ENVIRONMENT["FACHO_YIELD_SECONDS"]
FACHO_TRAPS_BIND: str = ENVIRONMENT["FACHO_TRAPS_BIND"]
FACHO_TRAP_GAP_SECONDS: float = ENVIRONMENT["FACHO_TRAP_GAP_SECONDS"]
FACHO_QUOTA_PERCENT: int = ENVIRONMENT["FACHO_QUOTA_PERCENT"]
FACHO_COORDINATOR_SECONDS: float = ENVIRONMENT["FACHO_COORDINATOR_SECONDS"]
FACHO_COORDINATOR_LOG_DAYS: int = ENVIRONMENT["FACHO_COORDINATOR_LOG_DAYS"]
FACHO_HISTORY_DAYS: int = ENVIRONMENT["FACHO_HISTORY_DAYS"]
FACHO_HISTORY_HOURLY_DAYS: int = ENVIRONMENT["FACHO_HISTORY_HOURLY_DAYS"]
FACHO_HISTORY_DAILY_DAYS: int = ENVIRONMENT["FACHO_HISTORY_DAILY_DAYS"]
FACHO_SUSPENDED_RETURN: str = ENVIRONMENT["FACHO_SUSPENDED_RETURN"]
FACHO_PACKET_TIMEOUT_SECONDS: float = ENVIRONMENT["FACHO_PACKET_TIMEOUT_SECONDS"]
FACHO_WEBHOOK_ALLOW: tuple[IPv4Network | IPv6Network, ...] = ENVIRONMENT["FACHO_WEBHOOK_ALLOW"]
FACHO_HEARTBEAT_URL: str = ENVIRONMENT["FACHO_HEARTBEAT_URL"]
FACHO_ZABBIX_SERVER: tuple[tuple[str, int], ...] = ENVIRONMENT["FACHO_ZABBIX_SERVER"]
FACHO_ZABBIX_HOST_PREFIX: str = ENVIRONMENT["FACHO_ZABBIX_HOST_PREFIX"]
FACHO_PUBLIC_URL: str = ENVIRONMENT["FACHO_PUBLIC_URL"]
FACHO_OIDC_ISSUER: str = ENVIRONMENT["FACHO_OIDC_ISSUER"]
FACHO_OIDC_CLIENT_ID: str = ENVIRONMENT["FACHO_OIDC_CLIENT_ID"]
FACHO_OIDC_CLIENT_SECRET_FILE: Path | None = ENVIRONMENT["FACHO_OIDC_CLIENT_SECRET_FILE"]
FACHO_OIDC_SCOPES: tuple[str, ...] = ENVIRONMENT["FACHO_OIDC_SCOPES"]
FACHO_OIDC_GROUPS_CLAIM: tuple[str, ...] = ENVIRONMENT["FACHO_OIDC_GROUPS_CLAIM"]
FACHO_OIDC_NAME: str = ENVIRONMENT["FACHO_OIDC_NAME"]
FACHO_LDAP_URL: str = ENVIRONMENT["FACHO_LDAP_URL"]
FACHO_LDAP_CA_FILE: Path | None = ENVIRONMENT["FACHO_LDAP_CA_FILE"]
FACHO_LDAP_BIND_DN: str = ENVIRONMENT["FACHO_LDAP_BIND_DN"]
FACHO_LDAP_BIND_PASSWORD_FILE: Path | None = ENVIRONMENT["FACHO_LDAP_BIND_PASSWORD_FILE"]
FACHO_LDAP_USER_BASE: str = ENVIRONMENT["FACHO_LDAP_USER_BASE"]
FACHO_LDAP_USER_FILTER: str = ENVIRONMENT["FACHO_LDAP_USER_FILTER"]
FACHO_LDAP_GROUP_BASE: str = ENVIRONMENT["FACHO_LDAP_GROUP_BASE"]
FACHO_LDAP_GROUP_FILTER: str = ENVIRONMENT["FACHO_LDAP_GROUP_FILTER"]
FACHO_SIGN_ON_ROLES: tuple[tuple[str, str], ...] = ENVIRONMENT["FACHO_SIGN_ON_ROLES"]
FACHO_SIGN_ON_OLT_GROUPS: tuple[tuple[str, str], ...] = ENVIRONMENT["FACHO_SIGN_ON_OLT_GROUPS"]
FACHO_SIGN_ON_HOURS: int = ENVIRONMENT["FACHO_SIGN_ON_HOURS"]
FACHO_SMARTOLT_API: bool = ENVIRONMENT["FACHO_SMARTOLT_API"] == "on"
FACHO_ONU_METRICS: int | None = ENVIRONMENT["FACHO_ONU_METRICS"]
FACHO_MAP_TILES: str = ENVIRONMENT["FACHO_MAP_TILES"]
FACHO_MAP_ATTRIBUTION: str = ENVIRONMENT["FACHO_MAP_ATTRIBUTION"]
FACHO_NETBOX_URL: str = ENVIRONMENT["FACHO_NETBOX_URL"]
FACHO_NETBOX_TOKEN_FILE: Path | None = ENVIRONMENT["FACHO_NETBOX_TOKEN_FILE"]
FACHO_NETBOX_ROLES: tuple[str, ...] = ENVIRONMENT["FACHO_NETBOX_ROLES"]
FACHO_NETBOX_SITES: tuple[str, ...] = ENVIRONMENT["FACHO_NETBOX_SITES"]
FACHO_NETBOX_TAG: str = ENVIRONMENT["FACHO_NETBOX_TAG"]
FACHO_NETBOX_CREDENTIALS_FILE: Path | None = ENVIRONMENT["FACHO_NETBOX_CREDENTIALS_FILE"]
FACHO_NETBOX_FIELDS: tuple[tuple[str, str], ...] = ENVIRONMENT["FACHO_NETBOX_FIELDS"]
FACHO_ACS_URL: str = ENVIRONMENT["FACHO_ACS_URL"]
FACHO_STATUS_PAGE: bool = ENVIRONMENT["FACHO_STATUS_PAGE"] == "on"
# The first encrypts, all of them decrypt.
FACHO_ENCRYPTION_KEYS: Iterable[str] = KeyFile(DATA_FOLDER.encryption_keys)
REDIS_URL: str = ENVIRONMENT["REDIS_URL"]

# Empty until the first run generates it; Django refuses to use an empty one.
SECRET_KEY = DATA_FOLDER.read_secret_key()
DEBUG = False
ALLOWED_HOSTS = list(ENVIRONMENT["FACHO_ALLOWED_HOSTS"])

try:
    DATABASES = {"default": database_entry(ENVIRONMENT["DATABASE_URL"], data_dir=DATA_FOLDER.path)}
except BadDatabaseUrl:
    ENVIRONMENT_PROBLEMS.append(problem_with("DATABASE_URL"))
    DATABASES = {"default": database_entry("", data_dir=DATA_FOLDER.path)}

FACHO_ENGINES = count_engines(
    ENVIRONMENT, cores=count_cores(), can_share="postgresql" in DATABASES["default"]["ENGINE"]
)

INSTALLED_APPS = [
    "facho.core",
    "facho.dashboard",
    "facho.neighbours",
    "facho.api",
    "facho.alerts",
    "facho.execution_coordinator",
    "facho.zabbix_pollers",
    "facho.plant",
    "facho.traps",
    "facho.executions",
    "facho.snmp_get",
    "facho.snmp_jobs",
    "facho.onus",
    "facho.accounts",
    "facho.hosts",
    "rest_framework",
    "drf_spectacular",
    "django_htmx",
    "facho.core.apps.FachoAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "facho.core.security.CompressionMiddleware",
    # Around those that set cookies.
    "facho.core.security.SecureCookiesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "facho.core.security.AddressMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "facho.accounts.sessions.SessionUseMiddleware",
    "facho.dashboard.account.views.PreferencesMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "facho.dashboard.shared.page.LivePartsMiddleware",
    "facho.core.security.ContentSecurityPolicyMiddleware",
]

ROOT_URLCONF = "facho.core.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "dashboard"
LOGOUT_REDIRECT_URL = "login"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # The pages' templates are next to their views.
        "DIRS": [Path(__file__).parents[1] / "dashboard"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "facho.core.health.standstill_in_head",
            ],
        },
    }
]

# Seconds for which the link of an invitation is valid.
PASSWORD_RESET_TIMEOUT = 3 * 24 * 3_600
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

LANGUAGE_CODE: str = ENVIRONMENT["FACHO_LANGUAGE"]
LANGUAGES = [("es", _("Spanish")), ("en", _("English")), ("pt-br", _("Portuguese"))]
USE_I18N = True
USE_TZ = True
TIME_ZONE: str = ENVIRONMENT["FACHO_TIME_ZONE"]

STATIC_URL = "static/"
# Served straight from the packages: no collectstatic step stands between install and first page.
WHITENOISE_USE_FINDERS = True

# A week at most, whether used or not; a new password ends all others, a closed account all.
SESSION_COOKIE_AGE = 7 * 24 * 60 * 60
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "facho.api.shared.permissions.BearerTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["facho.api.shared.permissions.ReadOrOperate"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["facho.api.shared.problems.JsonParser"],
    "DEFAULT_FILTER_BACKENDS": ["facho.api.shared.filters.QueryStringFilter"],
    "DEFAULT_PAGINATION_CLASS": "facho.api.shared.filters.Page",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "facho.api.shared.problems.problem_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Facho",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "ENUM_NAME_OVERRIDES": {
        "AlertChannelKindEnum": "facho.alerts.models.ChannelKind",
        "AlertKindEnum": "facho.alerts.conditions.CHOICES",
        "AlertSeverityEnum": "facho.alerts.models.Severity",
        "ExecutionStatusEnum": "facho.executions.models.ExecutionStates",
        "NoticeKindEnum": "facho.alerts.models.NoticeKind",
        "NoticeStateEnum": "facho.alerts.models.NoticeState",
        "PlanStatusEnum": "facho.execution_coordinator.models.PlanStatus",
        "ShownStateEnum": "facho.onus.words.ShownState",
    },
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "facho.api.shared.schema.add_problems"],
}

# Messages of the distributed mode. Results are not stored: the row of an execution has the outcome.
CELERY_BROKER_URL = CELERY_RESULT_BACKEND = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "snmp_default"
CELERY_TASK_QUEUES: dict[str, dict[str, str]] = {
    "snmp_default": {},
    "snmp_retry": {},
    "snmp_highprio": {},
    "zabbix_scheduler": {},
}
CELERY_TASK_ROUTES = {
    "snmp_jobs.tasks.execute_one": {"queue": "snmp_default"},
    "snmp_jobs.tasks.execute_one_retry": {"queue": "snmp_retry"},
    "snmp_get.tasks.get_poller_task": {"queue": "snmp_highprio"},
    "hosts.tasks.probe_one": {"queue": "snmp_default"},
    "zabbix_pollers.tasks.*": {"queue": "zabbix_scheduler"},
    "execution_coordinator.tasks.*": {"queue": "zabbix_scheduler"},
}
# Each entry repeats what the scheduler that leads does by itself. One that was not taken in time is dropped.
CELERY_BEAT_SCHEDULE = {
    "zabbix-scheduler": {
        "task": "zabbix_pollers.tasks.zabbix_scheduler_loop_task",
        "schedule": ENVIRONMENT["FACHO_BEAT_SCHEDULER_SECONDS"],
        "options": {"expires": 0.5},
    },
    "coordinator-loop": {
        "task": "execution_coordinator.tasks.coordinator_loop_task",
        "schedule": FACHO_COORDINATOR_SECONDS,
        "options": {"expires": FACHO_COORDINATOR_SECONDS},
    },
    "check-quota-violations": {
        "task": "execution_coordinator.tasks.check_quota_violations_task",
        "schedule": ENVIRONMENT["FACHO_BEAT_QUOTAS_SECONDS"],
        "options": {"expires": ENVIRONMENT["FACHO_BEAT_QUOTAS_SECONDS"]},
    },
    "cleanup-coordinator-logs": {
        "task": "execution_coordinator.tasks.cleanup_old_coordinator_logs_task",
        "schedule": ENVIRONMENT["FACHO_BEAT_CLEANUP_SECONDS"],
        "kwargs": {"days_old": FACHO_COORDINATOR_LOG_DAYS},
        "options": {"expires": ENVIRONMENT["FACHO_BEAT_CLEANUP_SECONDS"]},
    },
}
# A slot is a thread that waits; the work runs on one event loop. So a worker has a slot for every poller, and one more:
# without a free one it asks for messages once a second only, and the next run would wait for that.
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = FACHO_POLLERS + 1
# The row recovers what gets lost, not the broker: late acknowledgement would end a worker together with Redis.
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_DISABLE_PREFETCH = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 3.0, "socket_keepalive": True, "ack_emulation": False}
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_FOLDER.path / "celerybeat-schedule")
# Logging is set up by Django, as in every other process: redirected, standard error would lead back into the log.
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False

LOG_FORMATTER = "json" if ENVIRONMENT["FACHO_LOG_FORMAT"] == "json" else "line"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "facho.core.security.LineFormatter",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        },
        "json": {"()": "facho.core.security.JsonFormatter"},
        "coordinator": {
            "format": "{asctime} [{levelname}] {name}: {message}",
            "datefmt": "%Y-%m-%d %H:%M:%S%z",
            "style": "{",
        },
    },
    "filters": {
        "strangers": {"()": "facho.core.security.Strangers"},
        "brief_storage_errors": {"()": "facho.infrastructure.storage.BriefStorageErrors"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMATTER, "filters": ["brief_storage_errors"]},
        "strangers": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMATTER,
            "filters": ["brief_storage_errors", "strangers"],
        },
        "coordinator_table": {"class": "facho.execution_coordinator.log_handlers.LogTable"},
        "coordinator_file": {
            "class": "facho.execution_coordinator.log_handlers.LogFile",
            "formatter": "coordinator",
            "filename": DATA_FOLDER.coordinator_log,
            "maxBytes": 10 * 1024 * 1024,
            "backupCount": 5,
            "encoding": "utf-8",
            "delay": True,
        },
    },
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "facho": {"level": ENVIRONMENT["FACHO_LOG_LEVEL"]},
        **{
            name: {"handlers": ["strangers"], "propagate": False}
            for name in ("django.security", "django.request", "uvicorn", "asyncio")
        },
        # The table comes first: it finds the name of the OLT that the file writes.
        "coordinator": {
            "handlers": ["coordinator_table", "coordinator_file"],
            "level": "DEBUG",
            "propagate": False,
        },
    },
}
