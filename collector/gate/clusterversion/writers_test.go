package clusterversion_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Argo CD owns a ClusterVersion only where its own marks say so, and a warning blocks nothing.
func TestWriters(t *testing.T) {
	const tracking = "argocd.argoproj.io/tracking-id"
	cluster := func(change func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
		made := checktest.At("4.18.3")
		change(made)
		return made
	}
	annotated := func(id string) *configv1.ClusterVersion {
		return cluster(func(c *configv1.ClusterVersion) { c.Annotations = map[string]string{tracking: id} })
	}
	labeled := func(label string) *configv1.ClusterVersion {
		return cluster(func(c *configv1.ClusterVersion) { c.Labels = map[string]string{label: "fleet"} })
	}
	request := one("ClusterVersionRequest", preflight.Warn, "UnknownUpdate")
	and := func(name, reason string) map[string]checktest.Result {
		all := maps.Clone(request)
		maps.Copy(all, one(name, preflight.Warn, reason))
		return all
	}
	tracked := and("ClusterVersionTracked", "TrackedByArgoCD")
	runRows(t, clusterversion.RequestValid, map[string]row{
		"Annotation": {
			reason: "the annotation names this object", cluster: annotated("fleet:config.openshift.io/ClusterVersion:argocd/version"), to: "4.18.9",
			want:    tracked,
			message: []string{"the Application fleet of Argo CD"}, remedy: []string{"RespectIgnoreDifferences=true", "--show-managed-fields"},
		},
		"CopiedAnnotation": {
			reason:  "Argo CD does not own an object whose annotation names another",
			cluster: annotated("fleet:apps/Deployment:argocd/web"), to: "4.18.9", want: request,
		},
		"OtherName": {
			reason:  "it names another ClusterVersion",
			cluster: annotated("fleet:config.openshift.io/ClusterVersion:argocd/other"), to: "4.18.9", want: request,
		},
		"Malformed": {reason: "no ID of Argo CD", cluster: annotated("version"), to: "4.18.9", want: request},
		"Label": {
			reason: "others set this label as well", cluster: labeled("app.kubernetes.io/instance"), to: "4.18.9",
			want: request,
		},
		"OwnLabel": {
			reason: "the label is of the domain of Argo CD", cluster: labeled("argocd.argoproj.io/instance"), to: "4.18.9",
			want: tracked,
		},
		"Force": {
			reason: "an earlier update was forced",
			cluster: cluster(func(c *configv1.ClusterVersion) {
				c.Spec.DesiredUpdate = &configv1.Update{Version: "4.18.3", Image: checktest.PullSpec("4.18.3"), Force: true}
			}),
			to: "4.18.9", want: and("ClusterVersionForce", "ForceStays"), remedy: []string{`"path":"/spec/desiredUpdate/force"`},
		},
	})
	t.Run("AppliedLabel", func(t *testing.T) {
		server.Of("argocd-controller").Create(t, labeled("app.kubernetes.io/instance"))
		findings := checktest.Run(t, clusterversion.RequestValid(), server.Snapshot(t), checktest.Update(t, "4.18.3", "4.18.9"))
		if diff := cmp.Diff(tracked, checktest.Results(findings)); diff != "" {
			t.Errorf("Argo CD applied the object (-want, +got):\n%s", diff)
		}
	})
}
