package certificate

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	namePausedPoolKubeletCA = finding.NewName("PausedPoolKubeletCA",
		"The check for pools that are paused and so keep from their nodes the authority by which kubelets verify the API server, after it was "+
			"renewed (openshift/runbooks, MachineConfigControllerPausedPoolKubeletCA): a finding PausedPoolKubeletCA-<pool> for each. It warns, and fails "+
			"once all certificates that the nodes have are ended. It concerns clusters before 4.13, from which on nodes get it "+
			"without an update of their pool (machine-config-operator 636ab6f96), and makes 2 requests.")

	reasonKubeletCAWaits = finding.NewReason("KubeletCAWaits", finding.Explanation{
		Meaning: "Reported for a paused pool whose nodes do not get a renewed authority of the API server.",
		Cause: "The kube-apiserver-to-kubelet-signer was renewed while the pool was paused. Logs, exec and debug do not work on its nodes within 12 " +
			"hours of that, and the nodes leave the cluster when the certificate ends that they have.",
		Remedy: "Unpause the pool, so that all of its pending configuration is applied: `oc patch machineconfigpool NAME --type merge -p " +
			"'{\"spec\":{\"paused\":false}}'`.",
	})
)

// renewal is how long the machine-config-operator may take to render a configuration with a renewed authority.
const renewal = time.Hour

// PausedPools is the check PausedPoolKubeletCA.
func PausedPools() check.Check {
	return check.Check{
		Name: namePausedPoolKubeletCA, Kind: finding.SourceHealth, NotHosted: "its nodes have no MachineConfigPool",
		Concerns: func(u update.Update) bool { return u.From.Major == 4 && u.From.Minor < 13 },
		Reads:    append(append(check.ReadsTopology(), readsPools()...), check.Get("", "configmaps", apiServers, toKubelets), check.List("", "nodes")),
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
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonCertificatesValid, "no paused pool keeps a configuration from its nodes")}, nil
			}
			bundle, err := s.Cluster.ConfigMap(ctx, apiServers, toKubelets)
			if err != nil {
				return nil, fmt.Errorf("could not read ConfigMap %s/%s: %w", apiServers, toKubelets, err)
			}
			by := func(pool *machineconfigurationv1.MachineConfigPool) string { return s.PausedBy(ctx, pool) }
			return pausedPools{by: by, signers: parse(bundle.Data["ca-bundle.crt"]), now: s.Now}.judge(gap.ExtentOf(ctx), paused), nil
		},
	}
}

// renewed is true for a signer that the operator has made: its name ends in the time, and that of the installer does not
// (library-go pkg/operator/certrotation/signer.go).
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

func (p pausedPools) judge(read gap.Extent, paused []machineconfigurationv1.MachineConfigPool) []finding.Finding {
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
		return []finding.Finding{finding.Pass(read, reasonCertificatesValid, "no paused pool keeps a renewed authority of the API server from its nodes")}
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
	what := fmt.Sprintf("MachineConfigPool %q is paused, and keeps from its %s the authority of the API server that was renewed at %s",
		pool.Name, words.Count(int(pool.Status.MachineCount), "node"), words.Time(p.signers[0].NotBefore))
	f := finding.Warn(reasonKubeletCAWaits, "%s: the kubelets refuse logs and exec, and leave the cluster at %s, when the certificate ends that they have", what, words.Time(until))
	if !p.now.Before(until) {
		f = finding.Fail(reasonKubeletCAWaits, "%s: all certificates that the kubelets have are ended", what)
	}
	return check.Unpause(f.Named(finding.NameOf(namePausedPoolKubeletCA, pool.Name)), pool.Name, p.by(pool), "Unpause the pool, so that all of its pending configuration is applied.").
		About(finding.Object{APIVersion: machineconfigurationv1.GroupVersion.String(), Kind: "MachineConfigPool", Name: pool.Name})
}
