"""Just enough Django for `manage.py sandbox`, which must run where nothing is configured yet."""

INSTALLED_APPS = ["redrive_service.sandbox"]
USE_TZ = True
