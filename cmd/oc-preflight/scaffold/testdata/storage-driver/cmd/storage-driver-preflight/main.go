// Command storage-driver-preflight is the /bin/preflight of cluster-foo-operator. It reports
// whether a cluster can be updated to the release that ships it.
package main

import preflight "github.com/openshift/update-preflight/preflight-sdk"

func main() {
	preflight.Main(check())
}
