package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	ReasonAndMore         finding.Reason = "AndMore"
	ReasonPlainKubernetes finding.Reason = "PlainKubernetes"
	ReasonAPIMissing      finding.Reason = "APIMissing"
)

const (
	// maxFindings is how many findings a check makes of as many objects.
	maxFindings = 50
	// maxNamed is how many objects one message names.
	maxNamed = 5
	// maxQuoted bounds what is quoted of text that somebody else wrote, in bytes.
	maxQuoted = 1024
)

// problem is something wrong, not yet put into words: of many, most never are.
type problem struct {
	outcome  preflight.Outcome
	describe func() finding.Finding
}

// told describes the worst problems, and counts the others in one more finding,
// which is as bad as the worst of them.
func told(problems []problem) []finding.Finding {
	slices.SortStableFunc(problems, func(a, b problem) int { return cmp.Compare(severity(a.outcome), severity(b.outcome)) })
	findings := make([]finding.Finding, 0, min(len(problems), maxFindings+1))
	for _, problem := range problems[:min(len(problems), maxFindings)] {
		f := problem.describe()
		f.Outcome = problem.outcome
		findings = append(findings, f)
	}
	if len(problems) > maxFindings {
		findings = append(findings, uncounted(problems[maxFindings:]))
	}
	return findings
}

func uncounted(rest []problem) finding.Finding {
	count := map[preflight.Outcome]int{}
	for _, problem := range rest {
		count[problem.outcome]++
	}
	var counts []string
	for _, outcome := range outcomes() {
		if count[outcome] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", count[outcome], outcome))
		}
	}
	return finding.New(rest[0].outcome, ReasonAndMore,
		"there are %d more findings like the %d listed: %s", len(rest), maxFindings, strings.Join(counts, ", ")).
		Remedy("Put right what is listed, then run the preflight again: it lists the worst first.")
}

// outcomes are all of them, the worst first.
func outcomes() []preflight.Outcome {
	return []preflight.Outcome{preflight.Fail, preflight.Unknown, preflight.Warn, preflight.Skipped, preflight.Pass}
}

func severity(outcome preflight.Outcome) int { return slices.Index(outcomes(), outcome) }

// someOf lists the first few of so many.
func someOf(first []string, count int) string {
	text := strings.Join(first, ", ")
	if count > len(first) {
		text += fmt.Sprintf(" and %d more", count-len(first))
	}
	return text
}

// short bounds text that somebody else wrote, and keeps it on one line.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + " [...]"
}

// apiMissing is the answer where the API server does not serve what every
// OpenShift cluster has.
func apiMissing(ctx context.Context, cluster *snapshot.Cluster, kind, group string) ([]finding.Finding, error) {
	topology, err := cluster.Topology(ctx)
	if err != nil {
		return nil, fmt.Errorf("there are no %s, and could not read the Infrastructure \"cluster\": %w", kind, err)
	}
	if topology == snapshot.Kubernetes {
		return []finding.Finding{finding.Skipped(ReasonPlainKubernetes,
			"the cluster has no Infrastructure \"cluster\", so it is not OpenShift, and has no %s to look at", kind)}, nil
	}
	return []finding.Finding{finding.Unknown(ReasonAPIMissing, "this OpenShift cluster has no %s of %s, so nobody can tell", kind, group).
		Remedy("See what became of the API: oc api-resources --api-group=%s; oc get clusteroperators", group)}, nil
}
