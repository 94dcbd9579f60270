package certificate

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
)

var nameCertificateSecrets = finding.NewName("CertificateSecrets",
	"Checks for expired and expiring certificates in Secrets of the control plane, by the annotations "+
		"auth.openshift.io/certificate-not-before and auth.openshift.io/certificate-not-after, which their operators write (library-go "+
		"pkg/operator/certrotation). Each has a finding Certificate-<namespace>.<name>, as in the check Certificates. Only the "+
		"metadata of Secrets is read, and only if the user may list all Secrets, or in a must-gather; otherwise the check is skipped. "+
		"It concerns every update, and makes at most 6 requests.")

// The annotations of certificates (library-go pkg/operator/certrotation/annotations.go).
const (
	notBefore = "auth.openshift.io/certificate-not-before"
	notAfter  = "auth.openshift.io/certificate-not-after"
)

// rotated are the Secrets that operators renew at 80 % of the validity or earlier, by namespace and operator. Others
// with the annotations are copies for a revision of a static pod, or are left by an earlier release.
func rotated() []rotation {
	return []rotation{
		{namespace: apiServers, operator: "kube-apiserver", names: []string{
			"aggregator-client-signer", "kube-apiserver-to-kubelet-signer", "kube-control-plane-signer", "loadbalancer-serving-signer",
			"localhost-serving-signer",
			"localhost-recovery-serving-signer", "service-network-serving-signer", "node-system-admin-signer",
		}},
		{namespace: "openshift-kube-apiserver", operator: "kube-apiserver", names: []string{
			"aggregator-client", "kubelet-client", "localhost-serving-cert-certkey", "service-network-serving-certkey",
			"external-loadbalancer-serving-certkey",
			"internal-loadbalancer-serving-certkey", "localhost-recovery-serving-certkey", "check-endpoints-client-cert-key",
		}},
		{
			namespace: managed, operator: "kube-apiserver",
			names: []string{"kube-controller-manager-client-cert-key", "kube-scheduler-client-cert-key"},
		},
		{
			namespace: "openshift-kube-controller-manager-operator", operator: "kube-controller-manager",
			names: []string{"csr-signer", "csr-signer-signer"},
		},
		{namespace: "openshift-etcd", operator: "etcd", names: []string{"etcd-signer", "etcd-metric-signer"}},
	}
}

type rotation struct {
	namespace, operator string
	names               []string
}

// allSecrets is the permission without which no Secret is read.
func allSecrets() access.Request { return check.List("", "secrets") }

// Secrets is the check CertificateSecrets.
func Secrets() check.Check {
	return check.Check{
		Name: nameCertificateSecrets, Kind: finding.SourceHealth, NotHosted: "its certificates are in the management cluster",
		Reads: append(check.ReadsTopology(), readsPools()...), IfPermitted: []access.Request{allSecrets()},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			if skipped, err := notSelfManaged(ctx, s); skipped != nil || err != nil {
				return skipped, err
			}
			switch permitted, err := s.Cluster.Permitted(ctx, allSecrets()); {
			case err != nil:
				return nil, fmt.Errorf("could not review whether the user may list Secrets: %w", err)
			case !permitted:
				return []finding.Finding{notCovered(gap.ExtentOf(ctx))}, nil
			}
			return judgeSecrets(ctx, s)
		},
	}
}

func notCovered(read gap.Extent) finding.Finding {
	return finding.Skipped(read, reasonNotCovered,
		"no validity of a certificate in a Secret was read: the user may not list Secrets, or the archive has none; run the preflight "+
			"as a user who may list them, or on a must-gather; only their annotations are read")
}

// judgeSecrets leaves out the namespaces of which an archive has no Secrets: as where the user may not list them, the
// check does not apply.
func judgeSecrets(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	limit := s.Now.Add(window(ctx, s))
	var found []finding.Finding
	var ungathered []string
	var failures []error
	judged := 0
	for _, each := range rotated() {
		apart, log := gap.Track(ctx)
		secrets, err := s.Cluster.SecretMetadata(apart, each.namespace)
		if gap.Is(err) {
			ungathered = append(ungathered, each.namespace)
			continue
		}
		gap.Add(ctx, log.Extent())
		if err != nil {
			failures = append(failures, fmt.Errorf("could not list the Secrets of namespace %s: %w", each.namespace, err))
			continue
		}
		for _, name := range each.names {
			valid, known := validityOf(secrets[name])
			if !known {
				continue
			}
			judged++
			object := finding.Object{APIVersion: "v1", Kind: "Secret", Namespace: each.namespace, Name: name}
			if f, ok := (subject{what: "the certificates of " + name, operator: each.operator, object: object}).evaluate(valid, s.Now, limit); ok {
				found = append(found, f)
			}
		}
	}
	switch {
	case len(found)+len(failures) > 0:
		return finding.Bounded(finding.Drafts(found...)), errors.Join(failures...)
	case judged == 0:
		return []finding.Finding{notCovered(gap.ExtentOf(ctx))}, nil
	case len(ungathered) > 0:
		return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), reasonNotCovered,
			"%s in Secrets do not expire before %s without being renewed; the archive has no Secrets of the namespaces %s",
			words.Count(judged, "certificate"), words.Time(limit), words.List(ungathered, len(ungathered)))}, nil
	}
	return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonCertificatesValid,
		"of %s in Secrets none expires before %s without being renewed", words.Count(judged, "certificate"), words.Time(limit))}, nil
}

// validityOf is false for a Secret without a validity.
func validityOf(secret *metav1.PartialObjectMetadata) (validity, bool) {
	if secret == nil {
		return validity{}, false
	}
	from, errFrom := time.Parse(time.RFC3339, secret.Annotations[notBefore])
	until, errUntil := time.Parse(time.RFC3339, secret.Annotations[notAfter])
	return validity{from, until}, errFrom == nil && errUntil == nil && from.Before(until)
}
