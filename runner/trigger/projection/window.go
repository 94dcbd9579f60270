package projection

import (
	"time"

	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// documentWindow is how long a window of mode Document without an end is open.
const documentWindow = 30 * time.Minute

// Times are the times at which the preflight may start: from opens until closes, which is
// zero for no end. opens is zero for at once.
func Times(spec v1alpha1.UpdatePreflightSpec) (opens, closes time.Time) {
	switch {
	case spec.When == nil:
	case spec.When.At != nil:
		opens = spec.When.At.Time
	case spec.When.Window != nil:
		window := spec.When.Window
		opens = window.Start.Time
		switch {
		case window.End != nil:
			closes = window.End.Time
		case window.Mode != v1alpha1.Operator:
			closes = opens.Add(documentWindow)
		}
	}
	return opens, closes
}
