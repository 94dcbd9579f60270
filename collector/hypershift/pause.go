package hypershift

import (
	"fmt"
	"strconv"
	"time"
)

// Pause is the effect of spec.pausedUntil of a HostedCluster or a NodePool at a time.
type Pause struct {
	// Active is true while HyperShift changes nothing on behalf of the object.
	Active bool
	// Until is when an active pause ends; zero for one that ends when the field is removed.
	Until time.Time
}

// PausedUntil is the effect of spec.pausedUntil at a time: a boolean in any form that strconv.ParseBool
// reads, such as "True" or "1", else a time in RFC 3339. Any other text is an error, and pauses nothing
// (hypershift support/util/pausereconcile.go, ProcessPausedUntilField).
func PausedUntil(text string, now time.Time) (Pause, error) {
	if text == "" {
		return Pause{}, nil
	}
	if active, err := strconv.ParseBool(text); err == nil {
		return Pause{Active: active}, nil
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return Pause{}, fmt.Errorf("%q is neither a boolean nor a time in RFC 3339", text)
	}
	if !now.Before(until) {
		return Pause{}, nil
	}
	return Pause{Active: true, Until: until}, nil
}
