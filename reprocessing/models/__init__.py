"""What Postgres remembers: rows, constraints and querysets."""

from reprocessing.models.pulse import Pulse

__all__ = ["Pulse"]
