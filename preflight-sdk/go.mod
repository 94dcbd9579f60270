module github.com/openshift/update-preflight/preflight-sdk

go 1.23
