"""The service's own settings, with a receive that is forgotten sooner: what a lost answer hides is back in a minute."""

from redrive_service.settings import *  # noqa: F403  all of them
from redrive_service.settings import REDRIVE as OURS

REDRIVE = {**OURS, "RECEIVE_VISIBILITY": 20}
