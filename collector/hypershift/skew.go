package hypershift

import "github.com/blang/semver/v4"

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
