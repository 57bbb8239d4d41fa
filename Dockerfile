# An exported model and its server; neither PyTorch nor fairseq.
#
#   docker build -t fairseq-plugins .
#   docker run --rm -p 127.0.0.1:5000:5000 -v "$PWD/work/exported:/models/exported:ro" fairseq-plugins /models/exported
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY fairseq_plugins fairseq_plugins
COPY configs configs
RUN python -m venv /opt/fairseq-plugins && /opt/fairseq-plugins/bin/pip install --no-cache-dir ".[serve]"

FROM python:3.12-slim
COPY --from=build /opt/fairseq-plugins /opt/fairseq-plugins
USER 10001:10001
EXPOSE 5000
HEALTHCHECK --start-period=10s CMD ["/opt/fairseq-plugins/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:5000/health', timeout=5)"]
ENTRYPOINT ["/opt/fairseq-plugins/bin/fairseq-plugins", "serve", "--host", "0.0.0.0"]
