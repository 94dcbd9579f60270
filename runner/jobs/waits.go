package jobs

import (
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
)

var (
	reasonQueued = finding.NewReason("Queued", finding.Explanation{
		Meaning: "Reported for the time in which a check had no Job.",
		Cause: "As many Jobs of the run were unfinished as the parallelism allows, or another check of the component " +
			"ran, and its checks run one at a time.",
		Remedy: "None needed; a higher parallelism shortens it.",
	})
	reasonStarting = finding.NewReason("Starting", finding.Explanation{
		Meaning: "Reported for the time in which the pod of a check was started without an error.",
		Cause:   "The cluster created the Job, its pod and its containers, and pulled their images.",
	})
)

const (
	// maxWaits bounds the waits of a check; the last are kept.
	maxWaits = 5
	// maxWaitMessage bounds the message of a wait, in bytes.
	maxWaitMessage = 256
	// leastWait is the duration from which on a wait is kept.
	leastWait = time.Second
)

// waits are the periods in which a check waited. The zero value has none.
type waits struct {
	ended []finding.Wait
	// reason is the reason of the present wait; empty if the check does not wait.
	reason  finding.Reason
	message string
	since   time.Time
}

func (w *waits) observe(classified diagnosis.Classification, now time.Time) {
	reason := waitReason(classified)
	if reason != w.reason {
		w.end(now)
		w.reason, w.since = reason, now
	}
	w.message = classified.Detail
}

// waitReason is why a check waits; empty if it does not.
func waitReason(classified diagnosis.Classification) finding.Reason {
	switch {
	case classified.State == diagnosis.Queued:
		return reasonQueued
	case classified.State == diagnosis.Waiting && classified.Reason == (finding.Reason{}):
		return reasonStarting
	case classified.State == diagnosis.Waiting:
		return classified.Reason
	}
	return finding.Reason{}
}

func (w *waits) end(now time.Time) {
	if w.reason == (finding.Reason{}) || now.Sub(w.since) < leastWait {
		return
	}
	w.ended = append(w.ended, finding.Wait{
		Reason: w.reason.String(), Message: words.Line(w.message, maxWaitMessage),
		StartTime: words.Time(w.since), EndTime: words.Time(now),
	})
	w.ended = w.ended[max(0, len(w.ended)-maxWaits):]
}

// addTo ends the present wait, and adds all to the findings of the Job. Findings of a
// check that has not waited are left as they are.
func (w *waits) addTo(findings []finding.Finding, now time.Time) []finding.Finding {
	w.end(now)
	w.reason = finding.Reason{}
	if len(w.ended) == 0 {
		return findings
	}
	for i, f := range findings {
		if f.Job != nil {
			job := *f.Job
			job.Waits = w.ended
			findings[i].Job = &job
		}
	}
	return findings
}
