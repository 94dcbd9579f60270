package place_test

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/place"
)

// side is the management cluster of a hosted cluster, in which the user may make the requests that may
// permits.
func side(may func(authorizationv1.ResourceAttributes) bool) hosted.Estate {
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		created, ok := action.(clienttesting.CreateAction)
		if !ok {
			return false, nil, nil
		}
		review, ok := created.GetObject().(*authorizationv1.SelfSubjectAccessReview)
		if !ok {
			return false, nil, nil
		}
		answer := review.DeepCopy()
		answer.Status.Allowed = may(*review.Spec.ResourceAttributes)
		return true, answer, nil
	})
	of := &hypershift.HostedCluster{}
	of.Namespace, of.Name = "clusters", "example"
	return (&hosted.ControlPlane{Cluster: of, Management: &cluster.Cluster{Kubernetes: client}}).Estate()
}

// A check that the user may not run in the management cluster is inconclusive, with the missing permission and
// the command that prints the role. In one namespace, nothing is required in others.
func TestPermitted(t *testing.T) {
	release := releasetest.Release(releasetest.Job(nil))
	above := releasetest.Release(releasetest.Job(nil))
	above.Jobs[0].Management = true
	for name, tc := range map[string]struct {
		reason string
		may    func(authorizationv1.ResourceAttributes) bool
		want   string
	}{
		"All": {reason: "everything is permitted", may: func(authorizationv1.ResourceAttributes) bool { return true }},
		"Namespace": {
			reason: "the permissions in the namespace of the control plane suffice",
			may:    func(r authorizationv1.ResourceAttributes) bool { return r.Namespace == "clusters-example" },
		},
		"Jobs": {
			reason: "no Job may be created there", want: "create jobs.batch in namespace clusters-example",
			may: func(r authorizationv1.ResourceAttributes) bool { return r.Resource != "jobs" || r.Verb != "create" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := side(tc.may)
			p := place.Of(&cluster.Cluster{Kubernetes: fake.NewClientset()}, c)[1]
			permitted, refused := p.Permitted(t.Context(), jobplan.NewHosted("4.20.3", above, c.Namespace()))
			if tc.want == "" {
				if len(permitted.Checks) != 1 || len(refused) > 0 {
					t.Errorf("%s: checks %+v, refused %+v", tc.reason, permitted.Checks, refused)
				}
				return
			}
			if len(permitted.Checks) > 0 || len(refused) != 1 || refused[0].Outcome != preflight.Unknown ||
				!strings.Contains(refused[0].Message, tc.want) ||
				refused[0].Actions[0].Command != "oc preflight auth run --hosted-cluster clusters/example" {
				t.Errorf("%s: checks %+v, refused %+v", tc.reason, permitted.Checks, refused)
			}
		})
	}
	none := side(func(authorizationv1.ResourceAttributes) bool { return false })
	p := place.Of(&cluster.Cluster{Kubernetes: fake.NewClientset()}, none)[1]
	if permitted, refused := p.Permitted(t.Context(), jobplan.NewHosted("4.20.3", release, "clusters-example")); len(permitted.Checks) != 1 ||
		len(refused) > 0 || p.Side != check.Management {
		t.Errorf("a release without such checks needs no permission there: checks %+v, refused %+v", permitted.Checks, refused)
	}
}
