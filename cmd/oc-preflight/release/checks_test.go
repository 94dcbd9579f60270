package release_test

import (
	"bytes"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/cmd/oc-preflight/release"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/test/golden"
)

// shipped is a release with two checks and a manifest that violates the policy.
func shipped() release.Listing {
	check := func(name, component, file, namespace, image string) jobplan.Check {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
		job.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
		return jobplan.Check{Name: name, Component: component, File: file, Job: job}
	}
	return release.NewListing([]jobplan.Check{
		check("Etcd.Quorum", "etcd", "0000_12_etcd_11_preflight-job.yaml", "openshift-etcd", "registry.example.com/etcd@sha256:aa"),
		check("Site.Backup", "site", "checks/backup\x1b[2J.yaml", "ops", "registry.example.com/backup@sha256:bb"),
	}, []finding.Finding{
		finding.Pass(gap.Proven("a test"), finding.ReportedReason("Verified"),
			"the release is signed").Named("ReleaseSignature").From(finding.SourceSignature),
		finding.Unknown(finding.ReportedReason("Privileged"), "the container %q is privileged",
			"probe").Named("Storage.Probe").From(finding.SourceJob),
	})
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, listed := range map[string]release.Listing{"release": shipped(), "none": release.NewListing(nil, []finding.Finding{})} {
		for _, output := range []string{"text", "wide", "name", "json", "markdown", "html"} {
			var text bytes.Buffer
			if err := format.Write(&text, output, listed, format.Style{}); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "testdata/"+name+"."+output, text.Bytes())
		}
	}
}
