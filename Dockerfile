# Two images from one file: `service` (web, worker, beat) and `sqs` (the local SQS, for trying things out).

FROM python:3.13-slim AS service
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /app
COPY requirements.txt requirements-otel.txt ./
ARG REQUIREMENTS=requirements.txt
# For traces: docker build --build-arg REQUIREMENTS=requirements-otel.txt
RUN pip install --no-cache-dir --require-hashes -r $REQUIREMENTS
COPY manage.py ./
COPY redrive_service redrive_service
COPY reprocessing reprocessing
# collectstatic reads the settings, which need these variables. They are not set in the image.
RUN SECRET_KEY=for-collectstatic-only-it-protects-nothing-and-nobody-12345 ALLOWED_HOSTS=build.invalid \
    DATABASE_URL=postgres://build@build.invalid/build REDIS_URL=redis://build.invalid AWS_DEFAULT_REGION=us-east-1 \
    REDRIVE_CONTROL_QUEUE_URL=https://build.invalid/000000000000/redrive-control \
    REDRIVE_CAPTURE_QUEUE_URL=https://build.invalid/000000000000/redrive-capture \
    REDRIVE_REPLAY_QUEUE_URL=https://build.invalid/000000000000/redrive-replay \
    python manage.py collectstatic --noinput && groupadd --system --gid 10001 redrive \
    && useradd --system --no-create-home --uid 10001 --gid 10001 redrive
# A number, for Kubernetes' runAsNonRoot. Nothing but /tmp is written to: the root file system may be read-only.
USER 10001:10001
EXPOSE 8000 8001
CMD ["python", "manage.py", "serve", "--bind", "0.0.0.0:8000", "--health", "0.0.0.0:8001"]

FROM service AS sqs
USER root
COPY requirements-dev.txt .
RUN pip install --no-cache-dir --require-hashes -r requirements-dev.txt && mkdir /data && chown redrive /data
USER 10001:10001
VOLUME /data
EXPOSE 9324
CMD ["python", "manage.py", "sandbox", "--only", "sqs", "--host", "0.0.0.0", "--port", "9324", "--folder", "/data"]
