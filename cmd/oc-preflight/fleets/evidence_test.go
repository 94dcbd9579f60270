package fleets_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/evidence"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/offer"
	"github.com/openshift/update-preflight/test/program"
)

// The statements about an update may be in the current cluster, which is none of those that are judged.
func TestEvidenceOfTheCurrentCluster(t *testing.T) {
	judged, current := member(t, "00000000-0000-4000-8000-000000000001"), member(t, "00000000-0000-4000-8000-000000000002")
	text, err := evidence.Encode(evidence.Statement{
		Cluster: "00000000-0000-4000-8000-000000000003", From: offer.From, To: offer.To, Release: "sha256:" + strings.Repeat("1", 64), Decision: afterupdate.Regressed,
		Regressions: []evidence.Regressed{{Name: "RouteNotAdmitted", Objects: 1}}, JudgedTime: "2026-01-01T00:00:00Z",
	})
	if err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "statements"}, Data: map[string]string{"a.json": string(text)}}
	if _, err := kubernetes.NewForConfigOrDie(current.Config()).CoreV1().ConfigMaps("fleets").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	current.Deny(func(_ string, request apiserver.Request) bool { return request.Namespace == "secret" })
	directory := write(t, map[string]string{"a": judged.Kubeconfig})
	t.Setenv("KUBECONFIG", current.Kubeconfig)
	for name, tc := range map[string]struct {
		reason, source string
		more           []string
		code           int
		want           string
	}{
		"Noted":   {reason: "a regression only warns", source: "configmap/fleets/statements", code: exit.Ready, want: "the update to " + offer.To + " of 1 cluster was not good; 1 regressed: RouteNotAdmitted"},
		"Missing": {reason: "nothing is known, which is not the same as good", source: "configmap/fleets/none", code: exit.BadInput, want: "the ConfigMap none with statements about updates does not exist"},
		"Denied":  {reason: "the roles are those of the current cluster", source: "configmap/secret/statements", code: exit.Failed, want: `apply the roles that "auth fleet-evidence --evidence configmap/secret/statements" prints`},
		"NoHub":   {reason: "the current cluster is no hub", source: "hub", code: exit.Failed, want: "ManagedCluster"},
		"Kept":    {reason: "a result that is kept does not change with the cluster", source: "hub", more: []string{"--results", t.TempDir()}, code: exit.BadInput, want: "with --results, the source is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, append([]string{"fleet", "targets", "--kubeconfigs", directory, "--to", offer.To, "--quiet", "--evidence", tc.source}, tc.more...)...)
			if got.Code != tc.code || !strings.Contains(got.Stdout+got.Stderr, tc.want) {
				t.Errorf("%s: exit code %d, want %d and %q\n%s%s", tc.reason, got.Code, tc.code, tc.want, got.Stdout, got.Stderr)
			}
		})
	}
}
