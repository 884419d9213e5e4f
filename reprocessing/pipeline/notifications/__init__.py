"""Tell people what happened: write down who is to be told, and send what is owed, beside all other work."""

from reprocessing.pipeline.notifications.background import start_delivery, wait_for_delivery
from reprocessing.pipeline.notifications.deliver import deliver, is_due, send_trial

__all__ = ["deliver", "is_due", "send_trial", "start_delivery", "wait_for_delivery"]
