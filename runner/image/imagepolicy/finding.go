package imagepolicy

import (
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func unknown(reason finding.Reason, format string, args ...any) finding.Finding {
	fix := remedies()[reason]
	return finding.Unknown(reason, "%s", fmt.Sprintf(format, args...)).
		From(finding.SourceSignature).
		Remedy("%s", fix.text).Do(fix.actions...)
}

// remedy is an imperative sentence with its commands.
type remedy struct {
	text    string
	actions []finding.Action
}

func remedies() map[finding.Reason]remedy {
	return map[finding.Reason]remedy{
		reasonInvalidPullSpec: {text: "Name the image as REPOSITORY@sha256:DIGEST."},
		reasonUnsupportedRootOfTrust: {
			text: "Verify the image manually before the update, with the root of trust of the policy, such as with `cosign verify IMAGE`.",
		},
		reasonInvalidImagePolicy:  {text: "Correct the policy.", actions: []finding.Action{finding.Change("oc edit clusterimagepolicies")}},
		reasonSigstoreUnavailable: {text: "Make the registry reachable from here with permission to pull, then run the preflight again."},
		reasonImageUnavailable:    {text: "Make the image available from its registry or mirror, then run the preflight again."},
		reasonNoInstance:          {text: "Mirror the image for all architectures of the cluster."},
		reasonTooManySignatures:   {text: "Remove from the repository the signatures that are not by the provider."},
	}
}

func worst(findings []finding.Finding) finding.Finding {
	return slices.MinFunc(findings, func(a, b finding.Finding) int { return rank(a.Outcome) - rank(b.Outcome) })
}

func rank(outcome preflight.Outcome) int {
	return slices.Index([]preflight.Outcome{preflight.Fail, preflight.Unknown, preflight.Warn, preflight.Pass}, outcome)
}
