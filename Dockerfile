# The image of the controller. `make image` makes one for tests, without a container engine.
#
# The bases are pinned by digest. Renovate updates lines of the form NAME:TAG@DIGEST. By hand, the
# digest for all architectures is: skopeo inspect --raw docker://NAME:TAG | sha256sum
FROM registry.access.redhat.com/ubi9/go-toolset:1.26.7-1791275853@sha256:890b54e8d329f33f094ab17881bd37e20b80a54cc39141637310911d8dd9c575 AS builder
USER 0
WORKDIR /go/src/github.com/openshift/update-preflight
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -tags=grpcnotrace -ldflags='-s -w' -o /tmp/preflight-controller ./cmd/preflight-controller

FROM registry.access.redhat.com/ubi9/ubi-minimal:9.8-1791279563@sha256:5ed244b62bbf4095080144d9d35eb8fcd3d39a9801f94aadd63b9d10978a01ae
COPY --from=builder /tmp/preflight-controller /usr/bin/preflight-controller
# Any user can run it: OpenShift chooses one from the range of the namespace.
USER 65532
ENTRYPOINT ["/usr/bin/preflight-controller"]
LABEL io.k8s.display-name="OpenShift update preflight" \
      io.k8s.description="Runs the preflight checks of the updates that are selected or offered, and reports whether it is safe to update." \
      io.openshift.tags="openshift,update,preflight" \
      summary="Runs the preflight checks of the updates that are selected or offered." \
      vendor="Red Hat, Inc." \
      maintainer="openshift-update-preflight"
