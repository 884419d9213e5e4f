"""Minimal Django settings for `manage.py sandbox`, which needs no environment variables.

The sandbox imports this module first. So from here on, a signal is only recorded: during the other imports, which
are slow, it would end in a traceback.
"""

from redrive_service.sandbox import stopping

stopping.remember_signals()

INSTALLED_APPS = ["redrive_service.sandbox"]
USE_TZ = True
