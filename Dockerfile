# The image of the controller, as the builds of OpenShift make it. `make image` makes one
# for tests, without a container engine.
FROM registry.ci.openshift.org/ocp/builder:rhel-9-golang-1.26-openshift-5.1 AS builder
WORKDIR /go/src/github.com/openshift/update-preflight
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -tags=grpcnotrace -ldflags='-s -w' -o /tmp/preflight-controller ./cmd/preflight-controller

FROM registry.ci.openshift.org/ocp/5.1:base-rhel9
COPY --from=builder /tmp/preflight-controller /usr/bin/preflight-controller
# Any user may run it: OpenShift chooses one of the range of the namespace.
USER 65532
ENTRYPOINT ["/usr/bin/preflight-controller"]
LABEL io.k8s.display-name="OpenShift update preflight" \
      io.k8s.description="Runs the preflight checks of the updates that are selected or offered, and reports whether it is safe to update." \
      io.openshift.tags="openshift,update,preflight" \
      summary="Runs the preflight checks of the updates that are selected or offered." \
      vendor="Red Hat, Inc." \
      maintainer="openshift-update-preflight"
