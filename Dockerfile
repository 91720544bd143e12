# chaos and redis-server: docker build -t lockchaos . && docker run --rm lockchaos run --scenario failover --expect
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /chaos ./cmd/chaos

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends redis-server && \
	rm -rf /var/lib/apt/lists/*
COPY --from=build /chaos /usr/local/bin/chaos
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["chaos"]
