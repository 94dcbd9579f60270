package zoo

import (
	"encoding/json"
	"testing"

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
