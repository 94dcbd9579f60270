package risk_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/risk"
)

// FuzzListed checks that a risk whose text or name is in a message is never treated as
// one that does not apply.
func FuzzListed(f *testing.F) {
	f.Add("")
	f.Add("A breaks things. https://example.com/A")
	f.Add("B breaks things. https://example.com/B\n\n" + failedToEvaluate("A"))
	f.Add(formerly("A") + "\n\n" + formerly("B"))
	f.Fuzz(func(t *testing.T, message string) {
		a, b := promql("A", applies), promql("B", applies)
		if risk.Listed(message, a, b) != metav1.ConditionFalse {
			return
		}
		rest := strings.ReplaceAll(strings.ReplaceAll(message, failedToEvaluate("B"), ""), formerly("B"), "")
		if strings.Contains(rest, a.Message+" "+a.URL) && !strings.Contains(rest, b.Name) {
			t.Errorf("%q has the text of the risk, which is treated as not applying", message)
		}
		if !strings.Contains(message, b.Message) {
			t.Errorf("%q lists no risk, and one is treated as not applying", message)
		}
	})
}
