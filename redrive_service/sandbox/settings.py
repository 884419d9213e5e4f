"""Minimal Django settings for `manage.py sandbox`, which needs no environment variables.

The sandbox imports this module first. From here on, signals such as Ctrl-C are only recorded. Otherwise, a signal
during the other imports, which are slow, would end in a traceback.
"""

from redrive_service.sandbox import stopping

stopping.remember_signals()

INSTALLED_APPS = ["redrive_service.sandbox"]
USE_TZ = True
