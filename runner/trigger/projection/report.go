package projection

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// reportInterval is how long a time of report is kept.
const reportInterval = 30 * time.Minute

// report sets what readers of a copy of the status need, such as the hub of a fleet, which is asked by
// administrators: scalar values, the signed verdict and the time.
func (p projected) report(status *v1alpha1.UpdatePreflightStatus) {
	if p.object.Owned() {
		return
	}
	names := status.Blocking
	if len(names) == 0 {
		names = status.Undecided
	}
	status.Causes = joined(names)
	if status.Decision != "" && len(p.observed.Attestation) <= v1alpha1.MaxAttestation {
		status.Attestation = p.observed.Attestation
	}
	status.ReportTime = p.object.Status.ReportTime
	if at := status.ReportTime; at == nil || at.After(p.observed.Now) || !p.observed.Now.Before(at.Add(reportInterval)) {
		status.ReportTime = &metav1.Time{Time: p.observed.Now.Truncate(time.Second)}
	}
}

// joined are the first names that fit, separated by commas.
func joined(names []string) string {
	text := ""
	for _, name := range names {
		next := strings.TrimPrefix(text+","+strings.ReplaceAll(words.External(name), ",", "."), ",")
		if len(next) > v1alpha1.MaxCauses {
			break
		}
		text = next
	}
	return text
}
