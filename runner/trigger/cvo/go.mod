module github.com/openshift/update-preflight/runner/trigger/cvo

go 1.23
