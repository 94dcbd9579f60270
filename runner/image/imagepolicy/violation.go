package imagepolicy

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// violation is why a signature does not satisfy a requirement.
type violation struct {
	reason  finding.Reason
	message string
	outcome preflight.Outcome
}

func violates(reason finding.Reason, format string, args ...any) *violation {
	return &violation{reason: reason, message: fmt.Sprintf(format, args...), outcome: preflight.Fail}
}

func undecided(format string, args ...any) *violation {
	return &violation{reason: reasonInvalidImagePolicy, message: fmt.Sprintf(format, args...), outcome: preflight.Unknown}
}
