"""Django's settings. Values that differ between installations come only from environment variables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from csp import constants as csp

from redrive_service.broker.configuration import celery_settings
from redrive_service.environment import read
from redrive_service.help_settings import OTHER_APPS

BASE_DIR = Path(__file__).resolve().parent.parent
ENVIRONMENT = read(os.environ)
IN_PRODUCTION = ENVIRONMENT.mode == "production"

SECRET_KEY = ENVIRONMENT.secret_key
ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(ENVIRONMENT.trusted_origins)
DEBUG = False  # not even in the sandbox: a debug page shows payloads and secrets

INSTALLED_APPS = [
    "redrive_service.apps.RedriveServiceConfig",
    "reprocessing.apps.ReprocessingConfig",  # before the admin, to override some of its templates
    "reprocessing.idempotency",
    "redrive_service.apps.ServiceAdminConfig",
    *OTHER_APPS,
]

MIDDLEWARE = [
    "redrive_service.health.HealthMiddleware",
    *(["redrive_service.telemetry.access_log.AccessLogMiddleware"] if ENVIRONMENT.log_format == "json" else []),
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "reprocessing.api.site.middleware.ApiMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    *(["redrive_service.oidc.recheck.RecheckMiddleware"] if ENVIRONMENT.oidc else []),
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "redrive_service.urls"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["reprocessing.escaping"],
        },
    }
]
FORM_RENDERER = "reprocessing.escaping.FormRenderer"

# No connection pool, because Celery closes a pool after every task. A worker process keeps one connection with its
# prepared statements, and checks the connection before each task (`celery.close_old_connection`). After 20 s, a new
# connection follows, whose statements are planned with new statistics.
DATABASES = {
    "default": {
        **ENVIRONMENT.database,
        "CONN_MAX_AGE": 20,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 5,  # seconds; libpq's default is minutes
            # Prepared statements save planning, a fifth of PostgreSQL's time. A pooler in transaction mode has none.
            "prepare_threshold": None if ENVIRONMENT.behind_pooler else 5,
            **ENVIRONMENT.database.get("OPTIONS", {}),
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = ENVIRONMENT.redis_url
METRICS_TOKEN = ENVIRONMENT.metrics_token
ALIVE_FILE = ENVIRONMENT.alive_file

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = ["redrive_service.formats"]
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if IN_PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not IN_PRODUCTION  # a sandbox needs no collectstatic

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
# Wrong passwords are counted per user name and address, so that an attacker locks only the attacker's own address.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    *(["django.contrib.auth.backends.ModelBackend"] if ENVIRONMENT.password_login else []),
    *(["redrive_service.oidc.backend.ProviderBackend"] if ENVIRONMENT.oidc else []),
]
OIDC = ENVIRONMENT.oidc
PASSWORD_LOGIN = ENVIRONMENT.password_login
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = ENVIRONMENT.sign_in.attempts
AXES_COOLOFF_TIME = ENVIRONMENT.sign_in.lock
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # else further wrong passwords could extend a lock for ever
AXES_CLIENT_IP_CALLABLE = "redrive_service.sign_in.client_address"
AXES_LOCKOUT_CALLABLE = "redrive_service.sign_in.locked_out"
AXES_ENABLE_ADMIN = AXES_VERBOSE = False
AXES_DISABLE_ACCESS_LOG = True  # auth_user.last_login has the time of the last sign-in
AXES_SENSITIVE_PARAMETERS = ["username", "csrfmiddlewaretoken"]  # people type passwords into the user name field
PROXY_COUNT = ENVIRONMENT.proxy_count

SESSION_COOKIE_AGE = int(ENVIRONMENT.sign_in.session.total_seconds())
SESSION_EXPIRE_AT_BROWSER_CLOSE = ENVIRONMENT.sign_in.ends_with_browser
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IN_PRODUCTION
SECURE_SSL_REDIRECT = IN_PRODUCTION
SECURE_HSTS_SECONDS = 31_536_000 if IN_PRODUCTION else 0
# HSTS only for this host, because this service must not decide for other hosts of the domain.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if ENVIRONMENT.behind_proxy else None
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "reprocessing.admin.site.error_pages.unsure"
LOGIN_REDIRECT_URL = "admin:index"
# Browsers load only this service's files: no script, style or frame from the content of a message, and no eval.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [csp.NONE],
        "script-src": [csp.SELF],
        "style-src": [csp.SELF],
        "img-src": [csp.SELF, "data:"],  # arrows in Django's style sheets
        "connect-src": [csp.SELF],
        "form-action": [csp.SELF],
        "base-uri": [csp.NONE],
        "frame-ancestors": [csp.NONE],
    }
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "redrive_service.telemetry.log_format.formatter", "log_format": ENVIRONMENT.log_format},
    },
    "filters": {"outages": {"()": "redrive_service.telemetry.log_format.DatabaseOutageFilter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "celery.app.trace": {"filters": ["outages"]},
        "waitress.queue": {"level": "ERROR"},  # else a line for each request that waits for a thread
        "axes": {"level": "WARNING"},  # else a line for each sign-in
        "botocore": {"level": "WARNING"},  # else a line or two for each client that botocore makes
        "botocore.credentials": {"level": "ERROR"},  # code that assumes a role reports its failure
    },
}

# Settings of the app (reprocessing/conf.py has all names and defaults). COUNT_LAG and LONG_POLL are 0 in a sandbox,
# because the local SQS counts messages without delay, and need not be polled for long.
REDRIVE: dict[str, Any] = {
    "OUTBOUND_HOSTS": ENVIRONMENT.outbound_hosts,
    "SECRETS": ENVIRONMENT.secrets,
    "PAYLOAD_KEYS": ENVIRONMENT.payload_keys,
    "MASKED_FIELDS": ENVIRONMENT.masked_fields,
    "PLACE": ENVIRONMENT.place,
    "COLOUR": ENVIRONMENT.colour,
    "FIRST_STEPS": ENVIRONMENT.first_steps,
    "CLOUDWATCH": ENVIRONMENT.cloudwatch,
    "DESTINATIONS": ENVIRONMENT.destinations,
    "PUBLIC_URL": ENVIRONMENT.public_url,
    "TOKEN_RECHECK": ENVIRONMENT.token_recheck.total_seconds(),
    "TRACES": ENVIRONMENT.traces,
    "TRACE_MESSAGES": ENVIRONMENT.trace_messages,
    **ENVIRONMENT.alerts,
    "OWN_QUEUES": tuple(ENVIRONMENT.queue_urls.values()),
    **({} if IN_PRODUCTION else {"COUNT_LAG": 0, "LONG_POLL": 0}),
}

globals().update(celery_settings(queue_urls=ENVIRONMENT.queue_urls, region=ENVIRONMENT.region))
CELERY_DB_REUSE_MAX = 2**31  # else Celery closes each task's connection to PostgreSQL
CELERY_BEAT_SCHEDULER = "redrive_service.beat:LeaderScheduler"
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "tick": {
        "task": "reprocessing.tick",
        "schedule": 2.0 if IN_PRODUCTION else 1.0,  # faster in a sandbox, where a person waits for it
        # An old tick is useless, but SQS would keep it for days. The worker compares its own clock with the time that
        # beat's clock gave: if these clocks differed by more, all ticks would have expired.
        "options": {"queue": "redrive-control", "expire_seconds": 60},
    },
    "forget_sign_ins": {
        "task": "redrive_service.forget_sign_ins",
        "schedule": 3600.0,
        "options": {"queue": "redrive-control", "expire_seconds": 3600},
    },
}
