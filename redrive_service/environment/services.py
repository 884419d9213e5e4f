"""Read the variables of PostgreSQL, Redis and the service's own queues in SQS."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import environ

from redrive_service.environment.addresses import misfit_of_libpq, misfit_of_redis
from redrive_service.environment.variables import Variables

_QUEUES = ("redrive-control", "redrive-capture", "redrive-replay")
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d+")
_HOST_OF_A_REGION = re.compile(r"sqs(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
_QUEUE_PATH = re.compile(r"/\d{12}/[A-Za-z0-9_-]{1,80}")  # as in AWS's CreateQueue


def database(variables: Variables) -> dict[str, Any]:
    """Return Django's settings for the database, or an empty dict if DATABASE_URL cannot be used."""
    cure = "Set it to a PostgreSQL database: postgres://USER:PASSWORD@HOST:5432/NAME"
    # The scheme is checked first: for an unknown scheme, the parser's error shows the whole address with its password.
    value = variables.url("DATABASE_URL", cure, schemes=("postgres", "postgresql"))
    if problem := misfit_of_libpq(value):
        variables.problems.append(f"DATABASE_URL has {problem}. Correct or remove it. {cure}")
    if problem or not value:
        return {}
    found: dict[str, Any] = environ.Env.db_url_config(value)
    if not found["NAME"]:
        variables.problems.append(f"DATABASE_URL names no database. {cure}")
    return found


def redis_url(variables: Variables) -> str:
    """Return the URL of the Redis or Valkey server (REDIS_URL)."""
    cure = "Set it to a Redis or Valkey server: rediss://:PASSWORD@HOST:6379/0"
    value = variables.url("REDIS_URL", cure, schemes=("redis", "rediss", "unix"))
    if value and not value.startswith("unix:") and not re.fullmatch(r"/?[0-9]{0,99}", urlsplit(value).path):
        variables.problems.append(f"REDIS_URL does not end with the number of a database. {cure}")
    elif value and (problem := misfit_of_redis(value)):
        variables.problems.append(f"REDIS_URL has {problem}. Correct or remove it. {cure}")
    return value


def region(variables: Variables) -> str:
    """Return the AWS region of the service's own queues."""
    cure = "Set it to the region of your queues, such as eu-west-1."
    value = variables.required("AWS_DEFAULT_REGION", cure)
    if value and not _REGION.fullmatch(value):
        variables.problems.append(f"AWS_DEFAULT_REGION is not the name of a region. {cure}")
    return value


def queue_urls(variables: Variables, region: str) -> dict[str, str]:
    """Return the URLs of the three SQS queues of the service's own Celery tasks, by name. They must be in `region`."""
    urls = {queue: _queue_url(variables, queue, region) for queue in _QUEUES}
    usable = [url for url in urls.values() if url]
    if len(set(usable)) < len(usable):
        variables.problems.append("Two of the service's own queues have the same URL. Give each a queue of its own.")
    return urls


def _queue_url(variables: Variables, queue: str, region: str) -> str:
    name = f"{queue.upper().replace('-', '_')}_QUEUE_URL"
    cure = f"Set it to the URL of the service's own queue {queue}."
    value = variables.url(name, cure, schemes=("https", "http"))
    if not value:
        return ""
    found = urlsplit(value)
    at_home = _HOST_OF_A_REGION.fullmatch(found.hostname or "")
    if "@" in found.netloc:
        problem = f"has a user or a password: SQS takes neither, and logs would show them. {cure}"
    elif found.path.endswith(".fifo"):
        problem = f"is a FIFO queue. {cure} It must be a standard queue."
    elif not _QUEUE_PATH.fullmatch(found.path):
        problem = f"does not end with an account and a queue's name. {cure}"
    elif at_home and _REGION.fullmatch(region) and at_home[1] != region:
        problem = f"is in {at_home[1]}, but AWS_DEFAULT_REGION is {region}. Correct one of them."
    else:
        return value
    variables.problems.append(f"{name} {problem}")
    return value
