# codeinfo as an image. docker-compose.yml starts it with its stores; docs/operations.md says what of
# this was tried, and how.
FROM python:3.11-slim-bookworm@sha256:528257d48c1da0dcecc2e725d1ae34498d60c965f1241e39cd6a85a8859bdf84 AS build
# Add codex for the Codex SDK, which is about 360 MB
ARG EXTRAS="scale mongodb"
# A package index of your own, if you have one
ARG PIP_INDEX_URL
WORKDIR /opt/codeinfo
COPY scripts/install-product scripts/install-product
COPY requirements*.txt ./
# Extras are several words
# hadolint ignore=SC2086
RUN scripts/install-product /opt/venv ${EXTRAS}
COPY . .
RUN /opt/venv/bin/python -m compileall -q apps codeinfo

FROM python:3.11-slim-bookworm@sha256:528257d48c1da0dcecc2e725d1ae34498d60c965f1241e39cd6a85a8859bdf84
# For History, Impact and repositories by URL; the base image says which Debian it is
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git openssh-client \
 && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 1000 --create-home codeinfo \
 && install --directory --mode=700 --owner=codeinfo --group=codeinfo /var/lib/codeinfo
COPY --from=build /opt /opt
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    CODEINFO_IN_CONTAINER=true \
    CODEINFO_DATA_DIR=/var/lib/codeinfo \
    CODEINFO_FIRST_ROOT=none
WORKDIR /opt/codeinfo
USER 1000:1000
VOLUME /var/lib/codeinfo
EXPOSE 5010 5011 5012
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ.get(\"PORT\") or 5010}/health', timeout=4)"]
CMD ["python", "manage.py", "serve"]
