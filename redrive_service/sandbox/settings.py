"""Minimal Django settings for `manage.py sandbox`, which must run in an unconfigured environment.

This is the sandbox's first import, so signals are remembered from here on. A signal during the other imports, which
are slow, would end in a traceback.
"""

from redrive_service.sandbox import stopping

stopping.remember_signals()

INSTALLED_APPS = ["redrive_service.sandbox"]
USE_TZ = True
