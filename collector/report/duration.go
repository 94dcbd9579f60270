package report

import (
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/rollout"
)

// Range is an estimate of a duration, in minutes.
type Range struct {
	Low      int `json:"lowMinutes"`
	Expected int `json:"expectedMinutes"`
	High     int `json:"highMinutes"`
}

// RangeOf is an estimate, rounded.
func RangeOf(estimate rollout.Range) Range {
	rounded := estimate.Rounded()
	minutes := func(d time.Duration) int { return int(d / time.Minute) }
	return Range{minutes(rounded.Low), minutes(rounded.Expected), minutes(rounded.High)}
}

// String is the range in hours and minutes.
func (r Range) String() string {
	return fmt.Sprintf("%s (%s to %s)", hours(r.Expected), hours(r.Low), hours(r.High))
}

func hours(minutes int) string {
	const hour = 60
	switch {
	case minutes < hour:
		return fmt.Sprintf("%dm", minutes)
	case minutes%hour == 0:
		return fmt.Sprintf("%dh", minutes/hour)
	}
	return fmt.Sprintf("%dh%dm", minutes/hour, minutes%hour)
}

// Duration is how long one update, or all updates of a path, take.
type Duration struct {
	// ControlPlane is without the nodes of other pools. Total has those as well.
	ControlPlane Range `json:"controlPlane"`
	Total        Range `json:"total"`
	// DrainsRehearsed is true if both have what the drains take by a rehearsal; otherwise each
	// drain is assumed to be quick.
	DrainsRehearsed bool `json:"drainsRehearsed,omitempty"`
	// Basis is where the numbers come from.
	Basis []string `json:"basis"`
	// ProlongedBy is what makes the updates take longer than that.
	ProlongedBy []string `json:"prolongedBy,omitempty"`
}

// String is both ranges on one line.
func (d Duration) String() string {
	text := "control plane " + d.ControlPlane.String()
	if d.Total != d.ControlPlane {
		text += "; all nodes " + d.AllNodes()
	}
	return text
}

// AllNodes is the total on one line, with what is assumed of the drains.
func (d Duration) AllNodes() string {
	if d.DrainsRehearsed {
		return d.Total.String() + ", with the drains as rehearsed"
	}
	return d.Total.String() + ", if every drain is quick"
}
