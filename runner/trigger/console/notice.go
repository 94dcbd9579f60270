package console

import (
	"cmp"
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

const (
	// maxText bounds a notice, and maxVersion the version in it, in bytes.
	maxText    = 200
	maxVersion = 80
)

// Notice is a line of text for all users of the console.
type Notice struct {
	Text string
	// Until is when the notice ends.
	Until time.Time
}

// current is the first notice that has not ended; the zero value for none.
func current(notices []Notice, now time.Time) Notice {
	for _, notice := range notices {
		if now.Before(notice.Until) {
			return notice
		}
	}
	return Notice{}
}

// Notices are about what keeps the cluster from a requested state, the newest request first: the verdict on the selected
// update, which is the first target, is Blocked; the cluster has regressed since the last update. They have numbers and
// no names: not every user of the console may read the objects.
//
// Nothing else is a notice. An offered update was not requested. An Undecided verdict is the usual one until a run has
// ended; a notice blocks nothing, so that its absence permits nothing. An update that was rolled back is over, by the
// decision of an administrator. A regression is stated as long as the update is judged, a day after the last judgement:
// whether it was repaired later is unknown.
func Notices(targets []runplan.Target, decided runplan.Verdicts, after afterupdate.Report) []Notice {
	var notices []Notice
	if len(targets) > 0 && targets[0].Requester == record.BySelection {
		target := targets[0]
		stored, found := decided[target.Covered()]
		if until, ok := standing.ValidUntil(stored); found && ok && stored.Holds() && stored.Verdict.Decision == verdict.Blocked {
			version := cmp.Or(target.Version, stored.Target.Version, target.Digest())
			notices = append(notices, notice(until, "The preflight blocks the update to %s", version, words.Count(len(stored.Verdict.Blocking), "finding")))
		}
	}
	if last, err := time.Parse(time.RFC3339, after.Samples.Last); err == nil && after.Decision == afterupdate.Regressed {
		until := last.Add(judgement.Window)
		notices = append(notices, notice(until, "The cluster has regressed since the update to %s", after.Update.To, words.Count(after.Counts.Regressions, "problem")))
	}
	return notices
}

func notice(until time.Time, format, version, count string) Notice {
	return Notice{Text: words.Line(fmt.Sprintf(format, words.Line(version, maxVersion))+": "+count+".", maxText), Until: until}
}
