"""Describe the machine of a benchmark: processor, memory, system, and versions of the servers."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil
import redis

from redrive_service.sandbox.stack import Stack


def machine(stack: Stack, postgres: str) -> str:
    """Return the description of the machine, as one line of text. `postgres`: PostgreSQL's version and settings."""
    with redis.Redis.from_url(stack.valkey.url) as client:
        told = client.info("server")
    valkey = told.get("valkey_version", told["redis_version"])
    memory = round(psutil.virtual_memory().total / 2**30)
    return (
        f"{os.cpu_count()} cores ({_processor()}), {memory} GB, {platform.system()} {platform.release()};"
        f" Python {platform.python_version()}, PostgreSQL {postgres}, Valkey {valkey}"
    )


def _processor() -> str:
    """Return the processor's name, or an empty text if the system does not report it."""
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text().splitlines() if listed.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
