package hypershift

import (
	"fmt"
	"strconv"
	"time"

	"github.com/blang/semver/v4"
)

// Step is one update on the way of a hosted cluster to a release.
type Step struct {
	// Pool is the NodePool that is updated; empty for the control plane.
	Pool     string
	From, To semver.Version
}

// Running is the version of the oldest nodes of a NodePool.
type Running struct {
	Pool    string
	Version semver.Version
}

// Order are the updates of a hosted cluster along the releases of a path, that of the control plane
// first. The control plane precedes its NodePools, which may not be newer. A pool is updated as rarely as
// its skew permits: before the control plane would leave it behind by more than [MaxSkew] minor versions,
// and after the last update of the control plane. HyperShift updates a pool across minor versions at once.
func Order(path []semver.Version, pools []Running) []Step {
	var steps []Step
	present := map[string]semver.Version{}
	for _, each := range pools {
		present[each.Pool] = each.Version
	}
	follow := func(to semver.Version, due func(semver.Version) bool) {
		for _, each := range pools {
			if from := present[each.Pool]; from.LT(to) && due(from) {
				steps = append(steps, Step{Pool: each.Pool, From: from, To: to})
				present[each.Pool] = to
			}
		}
	}
	for i := 1; i < len(path); i++ {
		from, to := path[i-1], path[i]
		follow(from, func(pool semver.Version) bool { return Skewed(pool, to) == SkewTooOld })
		steps = append(steps, Step{From: from, To: to})
	}
	if len(path) > 0 {
		follow(path[len(path)-1], func(semver.Version) bool { return true })
	}
	return steps
}

// MaxSkew is how many minor versions a NodePool may be older than its control plane.
const MaxSkew = 3

// Skew compares a NodePool with the control plane.
type Skew string

// The relations. HyperShift reports the unsupported ones in the condition SupportedVersionSkew of the
// NodePool, and enforces nothing (ValidateVersionSkew).
const (
	// SkewNone is a supported pool that supports the next minor update of the control plane as well.
	SkewNone Skew = ""
	// SkewAtLimit is a supported pool that is MaxSkew minor versions older.
	SkewAtLimit Skew = "AtLimit"
	// SkewNewer is a pool with a later version, even a later patch.
	SkewNewer Skew = "Newer"
	// SkewTooOld is a pool that is more than MaxSkew minor versions older.
	SkewTooOld Skew = "TooOld"
	// SkewUnknown is a pool or a control plane of another major version than 4 and 5.
	SkewUnknown Skew = "Unknown"
)

// Skewed compares the version of a NodePool with that of its control plane.
func Skewed(pool, controlPlane semver.Version) Skew {
	older, known := normalize(pool)
	newer, comparable := normalize(controlPlane)
	switch {
	case !known || !comparable:
		return SkewUnknown
	case older.GT(newer):
		return SkewNewer
	case older.Minor+MaxSkew < newer.Minor:
		return SkewTooOld
	case older.Minor+MaxSkew == newer.Minor:
		return SkewAtLimit
	}
	return SkewNone
}

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
