package health

import "github.com/openshift/update-preflight/collector/finding"

// ReasonAsExpected is reported when a check of the cluster's health finds nothing
// wrong.
//
// Cause: the objects are in the expected state.
//
// Remedy: none needed.
const ReasonAsExpected finding.Reason = "AsExpected"

const (
	// maxNamed bounds the objects in one message.
	maxNamed = 5
	// maxQuoted bounds a text of the cluster in a message, in bytes.
	maxQuoted = 1024
)
