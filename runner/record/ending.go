package record

import (
	"time"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
)

// Ending is the final part of a record.
type Ending struct {
	// Phase is one of the final phases.
	Phase Phase
	// Verdict is the verdict of the report; its decision is empty if there is none.
	Verdict verdict.Verdict
	// Report is JSON of at most 64 MiB; nil if there is none.
	Report []byte
	// Fingerprint is the state of the cluster to which the verdict applies.
	Fingerprint map[string]string
}

// ValidUntil is the end of the validity of a verdict of that time: what the verdict
// states, at most fingerprint.MaxAge later.
func ValidUntil(decided verdict.Verdict, completed time.Time) time.Time {
	latest := completed.Add(fingerprint.MaxAge)
	if stated, err := time.Parse(time.RFC3339, decided.ValidUntil); err == nil && stated.Before(latest) {
		return stated.UTC()
	}
	return latest
}
