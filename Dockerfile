# chaos and redis-server: docker build -t lockchaos . && docker run --rm lockchaos run --scenario failover --expect
# With clients in other languages: --build-arg PACKAGES="python3 nodejs default-jre-headless", or other packages of Debian.
# The base images can be replaced by those of another registry: --build-arg GO=… --build-arg BASE=…
ARG GO=golang:1.26-bookworm
ARG BASE=debian:bookworm-slim
FROM ${GO} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /chaos ./cmd/chaos

FROM ${BASE}
ARG PACKAGES=
# Java's package makes links in man1, which a slim image lacks.
RUN mkdir -p /usr/share/man/man1 && apt-get update && apt-get install -y --no-install-recommends redis-server $PACKAGES && \
	rm -rf /var/lib/apt/lists/*
COPY --from=build /chaos /usr/local/bin/chaos
COPY LICENSE THIRD_PARTY_LICENSES.txt /usr/share/doc/chaos/
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["chaos"]
