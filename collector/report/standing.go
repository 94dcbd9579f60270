package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Standing is what has become of a run since its report was made.
type Standing struct {
	// Time is when that was found out, RFC 3339 in UTC, by the cluster's clock
	// as far as known.
	Time string `json:"time"`
	// Holder is the process that has a run which goes on; empty when none has.
	Holder string `json:"holder,omitempty"`
	// Ended says what has ended the validity of the verdict. Nothing means that
	// the verdict still holds.
	Ended []string `json:"ended,omitempty"`
}

// Holds says whether the verdict of the report is current. A report that was
// just made is.
func (r Report) Holds() bool { return r.Standing == nil || len(r.Standing.Ended) == 0 }

// headlineOutdated never has the decision first: it reads as current.
func headlineOutdated(report Report, target string) string {
	return fmt.Sprintf("Outdated: the verdict on the update to %s was %s, and does not hold any more.", target, decision(side(report)))
}

// writeEnded says why the verdict of an outdated report does not hold any more.
func writeEnded(w io.Writer, report Report) {
	const most = 10
	ended := report.Standing.Ended
	if len(ended) > most {
		ended = append(slices.Clone(ended[:most]), fmt.Sprintf("and %d more", len(ended)-most))
	}
	row(w, "Outdated", strings.Join(ended, "\n"))
}

// holder is who has a run that goes on, as far as known.
func holder(report Report) string {
	switch {
	case report.Standing == nil:
		return ""
	case report.Standing.Holder == "":
		return "nobody: nothing goes on until somebody attaches to the run"
	}
	return report.Standing.Holder
}
