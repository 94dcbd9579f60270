// Package certificate answers: which certificates of the cluster expire before an update is over, or soon after
// it?
//
// The CA certificates that verify are public, in ConfigMaps. Of Secrets only the metadata is read, which contains
// the validity in annotations, and only if the user may list Secrets anyway: no role grants that permission, since
// it also exposes the keys.
package certificate

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameCertificates = finding.NewName("Certificates",
		"Checks for expired and expiring CA bundles of the cluster, and for the default certificate of its ingress: each ConfigMap "+
			"with them has a finding Certificate-<namespace>.<name>. An expired certificate fails. A certificate that expires within the "+
			"duration of the update plus a week causes a warning if no operator rotates it, or if its operator should have rotated it "+
			"already, which it does at 80 % of the validity (library-go pkg/operator/certrotation). The check concerns every update, and "+
			"makes at most 9 requests. A ConfigMap that cannot be read, or has no certificate, is Unknown. A cluster that is less than a "+
			"day old has CAs that expire within a day, and are rotated.")

	nameCertificate = finding.NewName("Certificate",
		"An object whose certificate has expired or is about to expire, found by the checks Certificates and CertificateSecrets: "+
			"Certificate-<namespace>.<name>.")

	reasonCertificateEnded = finding.NewReason("CertificateEnded", finding.Explanation{
		Meaning: "A certificate or CA bundle has expired.",
		Cause: "It was not renewed: the cluster was shut down when the renewal was due, the operator that renews it is not running, or " +
			"no operator renews it. Whatever relies on the certificate fails, and so does an update that needs it.",
		Remedy: "Renew the certificate; if an operator should renew it, find out why the operator has not: `oc get clusteroperators`.",
	})
	reasonCertificateEnds = finding.NewReason("CertificateEnds", finding.Explanation{
		Meaning: "A certificate expires within the duration of the update plus a week, and was not renewed.",
		Cause:   "No operator renews it, or its operator has not done so at 80 % of its validity (library-go pkg/operator/certrotation).",
		Remedy:  "Renew the certificate; if an operator should renew it, find out why the operator has not: `oc get clusteroperators`.",
	})
	reasonCertificatesValid = finding.NewReason("CertificatesValid", finding.Explanation{
		Meaning: "No certificate that was read is about to expire.",
		Cause:   "All certificates are valid for the duration of the update plus a week, or are renewed before they expire.",
	})
	reasonNotCovered = finding.NewReason("CertificatesNotCovered", finding.Explanation{
		Meaning: "A ConfigMap contains no certificate that can be read, which is Unknown; or no Secret with certificates was read, " +
			"which does not count.",
		Cause: "The ConfigMap was edited, or its certificates were removed from an archive. Secrets are read only if the user may list " +
			"them. No role of `oc preflight auth` permits that, because it exposes their keys; an archive need not contain them.",
		Remedy: "Restore the ConfigMap. To check Secrets, run the preflight as a user who may list them, or on a must-gather. Only " +
			"their metadata is read.",
	})
)

// authority is a ConfigMap with certificates for one purpose, in the key ca-bundle.crt.
type authority struct {
	namespace, name string
	// purpose is the purpose of the certificates, as a noun phrase.
	purpose string
	// operator is the ClusterOperator that renews them; empty where none does.
	operator string
	// chain is true for the chain of one certificate, which comes first. Otherwise any certificate verifies, so that the
	// one counts that is valid the longest.
	chain bool
}

const (
	managed    = "openshift-config-managed"
	configured = "openshift-config"
	apiServers = "openshift-kube-apiserver-operator"
	// toKubelets is the authority by which kubelets verify the API server.
	toKubelets = "kube-apiserver-to-kubelet-client-ca"
)

// authorities are those that exist in every release since 4.8. The operators renew their signers
// (cluster-kube-apiserver-operator pkg/operator/certrotationcontroller, cluster-kube-controller-manager-operator
// pkg/operator/certrotationcontroller, service-ca-operator pkg/operator/rotate.go). The ingress operator renews neither
// its signer nor the default certificate that it makes (documentation of OpenShift, Ingress certificates, Expiration).
func authorities() []authority {
	return []authority{
		{
			namespace: managed, name: "kube-apiserver-aggregator-client-ca", purpose: "the requests of the API server to aggregated APIs",
			operator: "kube-apiserver",
		},
		{
			namespace: managed, name: "csr-controller-ca", purpose: "the client and serving certificates of kubelets",
			operator: "kube-controller-manager",
		},
		{namespace: apiServers, name: toKubelets, purpose: "the requests of the API server to kubelets", operator: "kube-apiserver"},
		{
			namespace: apiServers, name: "kube-control-plane-signer-ca", purpose: "the requests of the control plane to the API server",
			operator: "kube-apiserver",
		},
		{namespace: managed, name: "service-ca", purpose: "the serving certificates of Services", operator: "service-ca"},
		{namespace: configured, name: "etcd-serving-ca", purpose: "etcd", operator: "etcd"},
		{namespace: managed, name: "default-ingress-cert", purpose: "the default certificate of the ingress", chain: true},
	}
}

func (a authority) object() finding.Object {
	return finding.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: a.namespace, Name: a.name}
}

type validity struct{ from, until time.Time }

// late is true from when an operator should have renewed the certificate: at 80 % of its validity (library-go
// pkg/operator/certrotation/signer.go, needNewSigningCertKeyPair).
func (v validity) late(now time.Time) bool {
	return !now.Before(v.until.Add(-v.until.Sub(v.from) / 5))
}

// Authorities is the check Certificates.
func Authorities() check.Check {
	reads := check.ReadsTopology()
	for _, each := range authorities() {
		reads = append(reads, check.Get("", "configmaps", each.namespace, each.name))
	}
	return check.Check{
		Name: nameCertificates, Kind: finding.SourceHealth, NotHosted: "its CA bundles are in the management cluster",
		Reads: append(reads, readsPools()...),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			if skipped, err := notSelfManaged(ctx, s); skipped != nil || err != nil {
				return skipped, err
			}
			return judgeAuthorities(ctx, s)
		},
	}
}

// notSelfManaged is the result where the control plane is not in the cluster.
func notSelfManaged(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	switch topology, err := s.Topology(ctx); {
	case err != nil:
		return nil, err
	case topology == snapshot.Kubernetes:
		return []finding.Finding{check.PlainKubernetes("certificates that its operators renew")}, nil
	case topology == snapshot.HyperShift:
		return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), check.ReasonHyperShift,
			"the certificates of a hosted control plane are in the management cluster")}, nil
	}
	return nil, nil
}

func judgeAuthorities(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	limit := s.Now.Add(window(ctx, s))
	var found []finding.Finding
	var failures []error
	var first validity
	for _, each := range authorities() {
		bundle, err := s.Cluster.ConfigMap(ctx, each.namespace, each.name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("could not read ConfigMap %s/%s: %w", each.namespace, each.name, err))
			continue
		}
		valid, ok := each.validity(bundle)
		if !ok {
			found = append(found, without(each.object()))
			continue
		}
		if first.until.IsZero() || valid.until.Before(first.until) {
			first = valid
		}
		if f, ok := (subject{what: "the certificates for " + each.purpose, operator: each.operator, object: each.object()}).evaluate(valid, s.Now,
			limit); ok {
			found = append(found, f)
		}
	}
	switch {
	case len(found)+len(failures) > 0:
	case first.until.IsZero():
		found = append(found, finding.Skipped(gap.ExtentOf(ctx), reasonNotCovered,
			"the cluster has none of the ConfigMaps with CA bundles"))
	default:
		found = append(found, finding.Pass(gap.ExtentOf(ctx), reasonCertificatesValid,
			"no CA bundle of the cluster expires before %s without being renewed; the first one expires at %s", words.Time(limit),
			words.Time(first.until)))
	}
	return found, errors.Join(failures...)
}

// without is the finding about a ConfigMap of certificates that has none.
func without(bundle finding.Object) finding.Finding {
	return finding.Unknown(reasonNotCovered, "%s contains no readable "+
		"certificate in ca-bundle.crt", check.Describe(bundle)).About(bundle).
		Do(finding.Read("oc -n %s get configmap %s -o yaml", bundle.Namespace, bundle.Name))
}

// maxCertificates bounds the certificates of a ConfigMap.
const maxCertificates = 500

func (a authority) validity(bundle *corev1.ConfigMap) (validity, bool) {
	certificates := parse(bundle.Data["ca-bundle.crt"])
	if len(certificates) == 0 {
		return validity{}, false
	}
	counted := certificates[0]
	if !a.chain {
		counted = slices.MaxFunc(certificates, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	}
	return validity{counted.NotBefore, counted.NotAfter}, true
}

func parse(text string) []*x509.Certificate {
	var certificates []*x509.Certificate
	rest := []byte(text)
	for range maxCertificates {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			certificates = append(certificates, certificate)
		}
	}
	return certificates
}

type subject struct {
	what string
	// operator is the ClusterOperator that renews it; empty where none does.
	operator string
	object   finding.Object
}

// evaluate returns false if nothing is wrong.
func (s subject) evaluate(valid validity, now, limit time.Time) (finding.Finding, bool) {
	var f finding.Finding
	switch {
	case !now.Before(valid.until):
		f = finding.Fail(reasonCertificateEnded, "%s expired at %s", s.described(), words.Time(valid.until))
	case valid.until.After(limit), s.operator != "" && !valid.late(now):
		return finding.Finding{}, false
	case s.operator == "":
		f = finding.Warn(reasonCertificateEnds, "%s expire at %s, and no operator renews them", s.described(), words.Time(valid.until))
	default:
		f = finding.Warn(reasonCertificateEnds, "%s expire at %s, and ClusterOperator %q has not renewed them", s.described(),
			words.Time(valid.until), s.operator)
	}
	return f.Named(finding.NameOf(nameCertificate, s.object.Namespace+"."+s.object.Name)).
		Remedy("%s", s.remedy()).Do(s.actions()...).About(s.object), true
}

func (s subject) described() string {
	return fmt.Sprintf("%s (%s %s/%s)", s.what, s.object.Kind, s.object.Namespace, s.object.Name)
}

func (s subject) remedy() string {
	if s.operator != "" {
		return fmt.Sprintf("Find out why ClusterOperator %q does not renew them, and approve certificate requests that are pending. If "+
			"all control plane nodes were off when the renewal was due, follow the documentation on expired control plane "+
			"certificates.",
			s.operator)
	}
	return "Replace the certificate before the update."
}

func (s subject) actions() []finding.Action {
	operator := cmp.Or(s.operator, "ingress")
	return []finding.Action{finding.Read("oc describe clusteroperator %s", operator), finding.Read("oc get certificatesigningrequests")}
}

func readsPools() []access.Request {
	return []access.Request{check.List("machineconfiguration.openshift.io", "machineconfigpools")}
}

const (
	// margin is the time after an update for which certificates have to be valid.
	margin = 7 * 24 * time.Hour
	// unknownDuration is the duration of an update where the pools are not known.
	unknownDuration = 24 * time.Hour
	// controlPlane is the number of nodes of most control planes, and master the pool of them.
	controlPlane, master = 3, "master"
)

// window is the time for which certificates must be valid. If the pools are unknown, it is the usual time, and a
// result that depends on it is not a pass.
func window(ctx context.Context, s check.Subject) time.Duration {
	found, err := s.Cluster.MachineConfigPools(ctx)
	if err != nil || len(found) == 0 {
		return margin + unknownDuration
	}
	var pools []rollout.Pool
	for _, pool := range found {
		nodes := int(pool.Status.MachineCount)
		parallel, err := rollout.Parallel(pool.Spec.MaxUnavailable, nodes)
		if err != nil {
			parallel = 1
		}
		if pool.Name != master && !pool.Spec.Paused {
			pools = append(pools, rollout.Pool{Name: pool.Name, Nodes: nodes, Parallel: parallel})
		}
	}
	return margin + rollout.Documented(controlPlane, "").Estimate([]update.Kind{s.Update.Kind()}, pools).Total.High
}

var (
	namePausedPoolKubeletCA = finding.NewName("PausedPoolKubeletCA",
		"Checks for paused pools whose nodes therefore do not get the renewed CA by which kubelets verify the API server "+
			"(openshift/runbooks, MachineConfigControllerPausedPoolKubeletCA). Each such pool has a finding "+
			"PausedPoolKubeletCA-<pool>, which warns, and fails once all certificates on the nodes have expired. It concerns clusters "+
			"before 4.13; since 4.13, nodes get the CA without an update of their pool (machine-config-operator 636ab6f96). It makes 2 "+
			"requests.")

	reasonKubeletCAWaits = finding.NewReason("KubeletCAWaits", finding.Explanation{
		Meaning: "A paused pool keeps a renewed CA of the API server from its nodes.",
		Cause: "The kube-apiserver-to-kubelet-signer was renewed while the pool was paused. Within 12 hours after that, logs, exec and " +
			"debug fail on its nodes, and when their current certificate expires, the nodes leave the cluster.",
		Remedy: "Unpause the pool, so that all of its pending configuration is applied: `oc patch machineconfigpool NAME --type merge " +
			"-p '{\"spec\":{\"paused\":false}}'`.",
	})
)

// renewal is how long the machine-config-operator may take to render a configuration with a renewed authority.
const renewal = time.Hour

// PausedPools is the check PausedPoolKubeletCA.
func PausedPools() check.Check {
	return check.Check{
		Name: namePausedPoolKubeletCA, Kind: finding.SourceHealth, NotHosted: "its nodes have no MachineConfigPool",
		Concerns: func(u update.Update) bool { return u.From.Major == 4 && u.From.Minor < 13 },
		Reads: append(append(check.ReadsTopology(), readsPools()...), check.Get("", "configmaps", apiServers, toKubelets),
			check.List("", "nodes")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			pools, err := s.Cluster.MachineConfigPools(ctx)
			if apierrors.IsNotFound(err) {
				return s.WithoutAPI(ctx, "MachineConfigPools", machineconfigurationv1.GroupName)
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the MachineConfigPools: %w", err)
			}
			paused := slices.DeleteFunc(slices.Clone(pools), func(pool machineconfigurationv1.MachineConfigPool) bool { return !keeps(&pool) })
			if len(paused) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonCertificatesValid,
					"no paused pool withholds a configuration from its nodes")}, nil
			}
			bundle, err := s.Cluster.ConfigMap(ctx, apiServers, toKubelets)
			if err != nil {
				return nil, fmt.Errorf("could not read ConfigMap %s/%s: %w", apiServers, toKubelets, err)
			}
			by := func(pool *machineconfigurationv1.MachineConfigPool) string { return s.PausedBy(ctx, pool) }
			return pausedPools{by: by, signers: parse(bundle.Data["ca-bundle.crt"]), now: s.Now}.evaluate(gap.ExtentOf(ctx), paused), nil
		},
	}
}

// renewed is true for a signer that the operator has created: its name ends with the time, unlike the names of the
// installer (library-go pkg/operator/certrotation/signer.go).
func renewed(signer *x509.Certificate) bool { return strings.Contains(signer.Subject.CommonName, "@") }

// keeps is true for a paused pool with a pending configuration.
func keeps(pool *machineconfigurationv1.MachineConfigPool) bool {
	return pool.Spec.Paused && pool.Spec.Configuration.Name != pool.Status.Configuration.Name
}

// pausedPools has what the verdict on a paused pool depends on.
type pausedPools struct {
	// by is the program that has paused a pool.
	by      func(*machineconfigurationv1.MachineConfigPool) string
	signers []*x509.Certificate
	now     time.Time
}

func (p pausedPools) evaluate(read gap.Extent, paused []machineconfigurationv1.MachineConfigPool) []finding.Finding {
	signers := p.signers
	if len(signers) == 0 {
		return []finding.Finding{without(authority{namespace: apiServers, name: toKubelets}.object())}
	}
	slices.SortFunc(signers, func(a, b *x509.Certificate) int { return b.NotBefore.Compare(a.NotBefore) })
	var found []finding.Finding
	for i := range paused {
		if since, ok := pendingSince(&paused[i]); ok && renewed(signers[0]) && since.Before(signers[0].NotBefore.Add(renewal)) {
			found = append(found, p.kept(&paused[i]))
		}
	}
	if len(found) == 0 {
		return []finding.Finding{finding.Pass(read, reasonCertificatesValid,
			"no paused pool withholds a renewed CA of the API server from its nodes")}
	}
	return finding.Bounded(finding.Drafts(found...))
}

// pendingSince is from when the configuration that the nodes have is not the newest: a pool with an
// update that is pending is not Updated (machine-config-operator pkg/controller/node/status.go).
func pendingSince(pool *machineconfigurationv1.MachineConfigPool) (time.Time, bool) {
	for _, condition := range pool.Status.Conditions {
		if condition.Type == machineconfigurationv1.MachineConfigPoolUpdated && condition.Status == corev1.ConditionFalse {
			return condition.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// kept is the finding about a pool whose nodes do not have the newest of the signers.
func (p pausedPools) kept(pool *machineconfigurationv1.MachineConfigPool) finding.Finding {
	var until time.Time
	for _, signer := range p.signers[1:] {
		if signer.NotAfter.After(until) {
			until = signer.NotAfter
		}
	}
	what := fmt.Sprintf("MachineConfigPool %q is paused, and its %s lack the CA of the API server that was renewed at %s",
		pool.Name, words.Count(int(pool.Status.MachineCount), "node"), words.Time(p.signers[0].NotBefore))
	f := finding.Warn(reasonKubeletCAWaits, "%s: the kubelets reject logs and exec, and leave the cluster at %s, when their current "+
		"certificate expires", what, words.Time(until))
	if !p.now.Before(until) {
		f = finding.Fail(reasonKubeletCAWaits, "%s: all certificates of the kubelets have expired", what)
	}
	return check.Unpause(f.Named(finding.NameOf(namePausedPoolKubeletCA, pool.Name)), pool.Name, p.by(pool),
		"Unpause the pool, so that all of its pending configuration is applied.").
		About(finding.Object{APIVersion: machineconfigurationv1.GroupVersion.String(), Kind: "MachineConfigPool", Name: pool.Name})
}
