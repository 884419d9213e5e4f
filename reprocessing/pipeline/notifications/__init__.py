"""Send notifications: write due notifications to the outbox, and send them in a thread beside a worker's tasks."""

from reprocessing.pipeline.notifications.background import start_delivery, wait_for_delivery
from reprocessing.pipeline.notifications.deliver import deliver, is_due, send_trial

__all__ = ["deliver", "is_due", "send_trial", "start_delivery", "wait_for_delivery"]
