# syntax=docker/dockerfile:1
#
# A static binary on an empty base: no shell, no package manager, user 65532, fine with a read-only root file system.
# The store wants a writable directory: mount one at /data (`storage: sqlite:///data/vllm-triage.db`) or use PostgreSQL.
#
#   make image                                  # or: docker build --build-arg VERSION=v1.2.3 -t vllm-triage .
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges -v triage:/data -p 9099:9099 \
#     -v ./config.yaml:/etc/vllm-triage/config.yaml:ro vllm-triage
#
# Bases are pinned by the digest of their multi-arch index; the tag before it is for the reader. To move a pin:
#   docker buildx imagetools inspect golang:1.26.8-bookworm --format '{{.Manifest.Digest}}'
# The golang tag must not be older than the `go` line in go.mod: the image never downloads another toolchain.
ARG GO_IMAGE=golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot@sha256:d093aa3e30dbadd3efe1310db061a14da60299baff8450a17fe0ccc514a16639

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=dev
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/vllm-triage ./cmd/vllm-triage \
    && mkdir /out/data

FROM ${BASE_IMAGE}
COPY --from=build /out/vllm-triage /usr/bin/vllm-triage
# A named volume takes the owner of the directory it covers.
COPY --from=build --chown=65532:65532 /out/data /data
COPY LICENSE /LICENSE
USER 65532:65532
WORKDIR /data
EXPOSE 9099
VOLUME ["/data"]
ENTRYPOINT ["/usr/bin/vllm-triage"]
CMD ["serve", "--config", "/etc/vllm-triage/config.yaml"]
