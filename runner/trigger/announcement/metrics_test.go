package announcement_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
)

// The judgement of the last update is one series for each decision, of which one is 1; none without a judgement.
func TestAfterUpdateMetric(t *testing.T) {
	const name = "update_preflight_after_update"
	metrics := announcement.NewMetrics()
	if got := testutil.CollectAndCount(metrics, name); got != 0 {
		t.Errorf("%d series without a judgement", got)
	}
	metrics.SetAfter("4.19.1", afterupdate.Good)
	metrics.SetAfter("4.19.1", afterupdate.Regressed)
	want := `# HELP update_preflight_after_update 1 for the decision about the last update, compared with the baseline from before it.
# TYPE update_preflight_after_update gauge
update_preflight_after_update{decision="Good",target="4.19.1"} 0
update_preflight_after_update{decision="Regressed",target="4.19.1"} 1
update_preflight_after_update{decision="RolledBack",target="4.19.1"} 0
update_preflight_after_update{decision="Settling",target="4.19.1"} 0
update_preflight_after_update{decision="Undecided",target="4.19.1"} 0
update_preflight_after_update{decision="Unfinished",target="4.19.1"} 0
`
	if err := testutil.CollectAndCompare(metrics, strings.NewReader(want), name); err != nil {
		t.Error(err)
	}
	metrics.SetAfter("", "")
	if got := testutil.CollectAndCount(metrics, name); got != 0 {
		t.Errorf("%d series after the judgement was withdrawn", got)
	}
}
