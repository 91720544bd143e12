# chaos and redis-server: docker build -t lockchaos . && docker run --rm lockchaos run --scenario failover --expect
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
RUN apt-get update && apt-get install -y --no-install-recommends redis-server && \
	rm -rf /var/lib/apt/lists/*
COPY --from=build /chaos /usr/local/bin/chaos
COPY LICENSE THIRD_PARTY_LICENSES.txt /usr/share/doc/chaos/
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["chaos"]
