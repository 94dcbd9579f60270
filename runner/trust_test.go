package runner_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/release"
)

// signAs replaces the signature of the release with one under a reference.
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

func TestReleaseSignedUnderOtherReference(t *testing.T) {
	const releases = "quay.io/openshift-release-dev/ocp-release"
	for name, tc := range map[string]struct {
		reason, signed, repository string
		finding, want              string
	}{
		"Version": {reason: "another release", signed: releases + ":4.19.1-x86_64", finding: "ReleaseIdentity", want: "WrongVersion"},
		"Repository": {
			reason: "another image of the same provider", signed: "registry.access.redhat.com/rhel7:" + next,
			finding: "ReleaseSignature", want: "WrongRepository",
		},
		"NoTag": {reason: "the signature has no version", signed: releases, finding: "ReleaseIdentity", want: "NoSignedVersion"},
		"Configured": {
			reason: "a configured repository of another provider", signed: "example.com/release:" + next,
			repository: "example.com/release", finding: "ReleaseSignature", want: "Verified",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{})
			w.signAs(t, tc.signed)
			if tc.repository != "" {
				w.options.Trust.Repositories = []string{tc.repository}
			}
			decided := w.run(t)
			f := find(t, decided, tc.finding)
			if f.Reason != tc.want || f.Source != finding.SourceSignature {
				t.Errorf("%s: %s is %s (%s), want %s", tc.reason, tc.finding, f.Reason, f.Message, tc.want)
			}
			trusted := tc.want == "Verified"
			blocks := slices.Contains(slices.Concat(decided.Verdict.Blocking, decided.Verdict.Undecided), tc.finding)
			if decided.Target.Verified != trusted || blocks == trusted {
				t.Errorf("%s: verified %t, blocks the update: %t", tc.reason, decided.Target.Verified, blocks)
			}
			if decided.CVO.Accepts == nil || !*decided.CVO.Accepts {
				t.Errorf("%s: CVO does not compare the reference, but is reported to reject it: %+v", tc.reason, decided.CVO)
			}
			if trusted {
				return
			}
			for _, f := range decided.Findings {
				if f.Source == finding.SourcePayload || f.Name == check {
					t.Errorf("%s: a release that is not trusted is used: %+v", tc.reason, f)
				}
			}
			w.options.Judgement.Force = true
			if forced := w.run(t); forced.Target.Verified || !forced.Verdict.Forced || find(t, forced, "ReleasePayload").Outcome != preflight.Pass {
				t.Errorf("%s: with force: target %+v, verdict %+v; want a release that is read and not verified", tc.reason, forced.Target,
					forced.Verdict)
			}
		})
	}
}

func TestCVORejectsReleaseWithoutValidSignature(t *testing.T) {
	w := newWorld(t, map[string]string{})
	other, err := release.NewSigner("other")
	if err != nil {
		t.Fatal(err)
	}
	w.signer = other
	w.signAs(t, "quay.io/openshift-release-dev/ocp-release:"+next)
	decided := w.run(t)
	if decided.CVO.Accepts == nil || *decided.CVO.Accepts || decided.CVO.Reason != "RetrievePayload" {
		t.Errorf("cvo %+v, want a rejection", decided.CVO)
	}
}
