package jobs

import (
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/launch"
)

// unknown ends a check that is inconclusive.
func unknown(o Observation, why cause) Classification {
	return done(o, finding.Unknown(why.reason, "%s", why.detail).Remedy("%s", why.remedy).Do(why.actions...))
}

// tolerate waits until the timeout of the cause has passed.
func tolerate(o Observation, why cause) Classification {
	classified := why.waiting()
	if why.timeout == untilDeadline {
		classified.Idle = o.neverRan()
		return classified
	}
	waited := time.Duration(0)
	if o.Reason == why.reason {
		waited = o.Waited
	}
	if waited >= why.timeout {
		return unknown(o, why)
	}
	classified.Recheck = why.timeout - waited
	return classified
}

// expired ends the check at the deadline of the run, with its last state.
func expired(o Observation, classified Classification) Classification {
	why := classified.cause
	detail := classified.Detail
	if pod, ok := o.newest(); ok && o.logOf(pod) != nil {
		if lines := tail(string(o.Log.Text)); lines != "" {
			detail = sentence(detail+"; last log lines", lines)
		}
	}
	if o.APIErrors != "" {
		detail += "; requests to the API server fail: " + words.Line(o.APIErrors, maxLine)
	}
	if why.reason == "" {
		why.reason = collector.ReasonTimeout
	}
	if why.remedy == "" {
		why.remedy, why.actions = "Run the preflight again with a longer timeout.", []finding.Action{finding.Retry(finding.OptionTimeout)}
	}
	why.detail = "timed out: " + detail
	return unknown(o, why)
}

// notStarted ends a check that was queued at the deadline of the run: for the
// first time, or again after waiting.
func (o Observation) notStarted(waiting Classification) Classification {
	if waiting.Reason != "" {
		return expired(o, waiting)
	}
	return unknown(o, cause{
		reason: launch.ReasonNotStarted, detail: "timed out: the check waited for other checks to end, and was not started",
		remedy:  "Run the preflight again with a longer timeout or a higher parallelism.",
		actions: []finding.Action{finding.Retry(finding.OptionTimeout), finding.Retry(finding.OptionParallelism)},
	})
}
