package dependency_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

// server is the API server that the tests of this package share.
var server checktest.Server

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { server = checktest.Connect(c.Config) }, cluster.ControlPlaneOnly())
}

// patch is a patch update, which reboots nodes.
func patch(t *testing.T) update.Update {
	t.Helper()
	return checktest.Update(t, "4.18.3", "4.18.4")
}

type results = map[string]checktest.Result

func result(outcome preflight.Outcome, reason string) checktest.Result {
	return checktest.Result{Outcome: outcome, Reason: reason}
}
