"""Just enough Django for `manage.py sandbox`, which must run where nothing is configured yet.

They are the first of the sandbox to be imported, so signals are listened to from here on: what imports are left takes
a while, and a signal in the midst of them would end in a traceback.
"""

from redrive_service.sandbox import stopping

stopping.remember_signals()

INSTALLED_APPS = ["redrive_service.sandbox"]
USE_TZ = True
