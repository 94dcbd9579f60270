package runner_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/release"
)

// signAs has the release signed as another image than newWorld does.
func (w world) signAs(t *testing.T, reference string) {
	t.Helper()
	data, err := w.signer.Sign(w.pullSpec, reference)
	if err != nil {
		t.Fatal(err)
	}
	signed := release.Store{}
	signed.Add(w.pullSpec, data)
	configMaps := w.cluster.Kubernetes.CoreV1().ConfigMaps("openshift-config-managed")
	if _, err := configMaps.Update(t.Context(), signed.ConfigMap("signatures"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestReleaseThatIsSignedAsAnother(t *testing.T) {
	const releases = "quay.io/openshift-release-dev/ocp-release"
	for name, tc := range map[string]struct {
		reason, signed, repository string
		finding, want              string
	}{
		"Version":    {reason: "another release", signed: releases + ":4.19.1-x86_64", finding: "ReleaseIdentity", want: "WrongVersion"},
		"Repository": {reason: "another image of the same provider", signed: "registry.access.redhat.com/rhel7:" + next, finding: "ReleaseSignature", want: "WrongRepository"},
		"NoTag":      {reason: "nobody signed which version it is", signed: releases, finding: "ReleaseIdentity", want: "NoSignedVersion"},
		"Configured": {reason: "a provider of one's own", signed: "example.com/release:" + next, repository: "example.com/release", finding: "ReleaseSignature", want: "Verified"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{})
			w.signAs(t, tc.signed)
			if tc.repository != "" {
				w.options.Repositories = []string{tc.repository}
			}
			told := w.run(t)
			f := find(t, told, tc.finding)
			if f.Reason != tc.want || f.Source != finding.SourceSignature {
				t.Errorf("%s: %s says %s (%s), want %s", tc.reason, tc.finding, f.Reason, f.Message, tc.want)
			}
			trusted := tc.want == "Verified"
			stops := slices.Contains(slices.Concat(told.Verdict.Blocking, told.Verdict.Undecided), tc.finding)
			if told.Target.Verified != trusted || stops == trusted {
				t.Errorf("%s: verified %t, it stops the update: %t", tc.reason, told.Target.Verified, stops)
			}
			if told.CVO.Accepts == nil || !*told.CVO.Accepts {
				t.Errorf("%s: CVO does not compare it, and is said to refuse: %+v", tc.reason, told.CVO)
			}
			if trusted {
				return
			}
			for _, f := range told.Findings {
				if f.Source == finding.SourcePayload || f.Name == check {
					t.Errorf("%s: the release is used all the same: %+v", tc.reason, f)
				}
			}
			w.options.Force = true
			if forced := w.run(t); forced.Target.Verified || !forced.Verdict.Forced || find(t, forced, "ReleasePayload").Outcome != preflight.Pass {
				t.Errorf("%s: with force: target %+v, verdict %+v; want it read, and not verified", tc.reason, forced.Target, forced.Verdict)
			}
		})
	}
}

// TestCVORefusesWhatNobodySigned has no signature that anybody would accept.
func TestCVORefusesWhatNobodySigned(t *testing.T) {
	w := newWorld(t, map[string]string{})
	stranger, err := release.NewSigner("stranger")
	if err != nil {
		t.Fatal(err)
	}
	w.signer = stranger
	w.signAs(t, "quay.io/openshift-release-dev/ocp-release:"+next)
	told := w.run(t)
	if told.CVO.Accepts == nil || *told.CVO.Accepts || told.CVO.Reason != "RetrievePayload" {
		t.Errorf("cvo %+v, want that it refuses, too", told.CVO)
	}
}
