package running_test

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/offer"
)

// The state before the update is stored unless the user does not want that, by names or by digests.
func TestBaselineOfARun(t *testing.T) {
	web := baseline.Key{Kind: baseline.Deployment, Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		args             []string
		stored, redacted bool
	}{
		"Default":  {stored: true},
		"Redacted": {args: []string{"--redact-baseline"}, stored: true, redacted: true},
		"Off":      {args: []string{"--no-baseline"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, nil)
			c.Add(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}})
			decided := reportOf(t, run(t, c, append([]string{"--to", offer.To, "-o", "json"}, tc.args...)...))
			client, err := kubernetes.NewForConfig(c.Config())
			if err != nil {
				t.Fatal(err)
			}
			found, err := baselinestore.New(client).Get(t.Context(), decided.Run.ID)
			if _, absent := errors.AsType[*baselinestore.AbsentError](err); absent == tc.stored || err != nil && !absent ||
				len(decided.Notices) > 0 {
				t.Fatalf("notices %v, error %v", decided.Notices, err)
			}
			if !tc.stored {
				return
			}
			key := web
			if tc.redacted {
				key = web.Redacted(found.Digest)
			}
			if _, exists := found.State.Objects[key]; !exists || found.State.ClusterID != decided.Cluster.ID || found.State.Version != offer.From {
				t.Errorf("the baseline of %s %s has %v, want %s", found.State.ClusterID, found.State.Version, found.State.Keys(), key)
			}
		})
	}
}

// A user who may not store it gets the verdict, and reads why a comparison will not be possible.
func TestBaselineThatMayNotBeStored(t *testing.T) {
	c := newCluster(t, nil)
	c.Deny(func(_ string, request apiserver.Request) bool {
		return request.Verb == "create" && request.Resource == "secrets"
	})
	got := run(t, c, "--to", offer.To)
	if want := "Notice     no baseline is stored, so the state after the update cannot be compared"; got.Code != exit.Ready ||
		!strings.Contains(got.Stdout, want) {
		t.Errorf("exit code %d, want %q:\n%s%s", got.Code, want, got.Stdout, got.Stderr)
	}
}
