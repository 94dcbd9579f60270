package zoo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
)

// Conformance runs "oc-preflight conformance", which must end with this exit code, and
// returns one result by requirement: a failure, if there is one.
func (z *Zoo) Conformance(tb testing.TB, code int, args ...string) map[string]requirement.Result {
	tb.Helper()
	got := z.Call(tb, append([]string{"conformance", "-o", "json"}, args...)...)
	if got.Code != code {
		tb.Fatalf("conformance %v: exit code %d, want %d\n%s%s", args, got.Code, code, got.Stderr, got.Stdout)
	}
	var report conformance.Report
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil {
		tb.Fatalf("%v\n%s", err, got.Stdout)
	}
	results := map[string]requirement.Result{}
	for _, result := range report.Results {
		tb.Logf("%-8s %-19s %s (%s)", result.Outcome, result.Requirement, result.Message, result.Reason)
		if results[result.Requirement].Outcome != preflight.Fail {
			results[result.Requirement] = result
		}
	}
	return results
}

// Violations are what conformance reports of a check that violates requirements.
type Violations struct {
	// Failed has the reasons of the failed requirements, and Messages parts of the messages of some, by
	// requirement.
	Failed, Messages map[string]string
	// Passes are requirements that the check meets.
	Passes []string
}

// Expect fails the test unless the results are these, each failure with a remedy.
func (v Violations) Expect(tb testing.TB, reason string, results map[string]requirement.Result) {
	tb.Helper()
	failed := map[string]string{}
	for name, result := range results {
		if result.Outcome != preflight.Fail {
			continue
		}
		failed[name] = result.Reason
		if result.Remediation == "" {
			tb.Errorf("%s: %s has no remedy", reason, name)
		}
	}
	if diff := cmp.Diff(v.Failed, failed); diff != "" {
		tb.Errorf("%s: failed requirements (-want, +got):\n%s", reason, diff)
	}
	for _, name := range v.Passes {
		if results[name].Outcome != preflight.Pass {
			tb.Errorf("%s: %s: %+v, want Pass", reason, name, results[name])
		}
	}
	for name, message := range v.Messages {
		if got := results[name].Message; !strings.Contains(got, message) {
			tb.Errorf("%s: the message of %s is %q, want %q", reason, name, got, message)
		}
	}
}

// ExpectConforms fails the test unless a check meets each requirement. A check that ends
// before it can be stopped is not stopped.
func ExpectConforms(tb testing.TB, results map[string]requirement.Result) {
	tb.Helper()
	if len(results) != 14 {
		tb.Errorf("%d results, want one of each requirement", len(results))
	}
	for name, result := range results {
		if result.Outcome != preflight.Pass && result.Reason != "TooFast" && result.Reason != "NoAccess" {
			tb.Errorf("%s: %+v, want Pass", name, result)
		}
	}
}

// ExpectNoConformance fails the test if objects or namespaces of conformance remain.
func (z *Zoo) ExpectNoConformance(tb testing.TB) {
	tb.Helper()
	z.ExpectNothingLeft(tb)
	left, err := z.Client(tb).CoreV1().Namespaces().List(tb.Context(), metav1.ListOptions{LabelSelector: "preflight.openshift.io/conformance"})
	if err != nil || len(left.Items) > 0 {
		tb.Errorf("%d namespaces remain (%v)", len(left.Items), err)
	}
}
