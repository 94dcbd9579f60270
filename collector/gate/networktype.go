package gate

import (
	"context"
	"fmt"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameNetworkType = finding.NewName("NetworkType",
		"Blocks updates from a cluster with OpenShift SDN to a release without it: 4.17 and later (CVO pkg/readiness, check "+
			"\"network\"; release notes of 4.17). It blocks every such update from before 4.17, whatever the cluster-network-operator "+
			"reports in its condition Upgradeable.")

	reasonNetworkTypeSupported = finding.NewReason("NetworkTypeSupported", finding.Explanation{
		Meaning: "The target supports the network type of the cluster.",
		Cause:   "Network \"cluster\" has a status.networkType other than OpenShiftSDN.",
	})
	reasonOpenShiftSDNRemoved = finding.NewReason("OpenShiftSDNRemoved", finding.Explanation{
		Meaning: "The cluster uses OpenShift SDN, which the target does not include.",
		Cause:   "OpenShift 4.17 and later include OVN-Kubernetes only.",
		Remedy: "Migrate the cluster to OVN-Kubernetes before the update; `oc get network.config cluster -o yaml` shows " +
			"the network type.",
	})
	reasonNetworkTypeNotReported = finding.NewReason("NetworkTypeNotReported", finding.Explanation{
		Meaning: "The network type of the cluster is unknown, so the check is inconclusive.",
		Cause:   "The cluster-network-operator has not set status.networkType of Network \"cluster\".",
		Remedy:  "Check that the cluster-network-operator is running.",
		Command: "oc -n openshift-network-operator get pods",
	})
)

// NetworkType is the check NetworkType.
func NetworkType() check.Check {
	return check.Check{
		Name: nameNetworkType, Kind: finding.SourceGate, Concerns: removesSDN,
		Reads: append(check.ReadsTopology(), check.List(configv1.GroupName, "networks")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			topology, err := s.Topology(ctx)
			if err != nil {
				return nil, err
			}
			if topology == snapshot.Kubernetes {
				return []finding.Finding{check.PlainKubernetes("Networks")}, nil
			}
			networks, err := snapshot.List[configv1.Network](ctx, s.Cluster, configv1.GroupVersion.WithResource("networks"))
			if apierrors.IsNotFound(err) {
				return []finding.Finding{check.APIMissing("Networks", configv1.GroupName)}, nil
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the Networks: %w", err)
			}
			return []finding.Finding{judgeNetworkType(gap.ExtentOf(ctx), networks, s.Update.To).About(finding.Object{
				APIVersion: configv1.GroupVersion.String(), Kind: "Network", Name: "cluster",
			})}, nil
		},
	}
}

// removesSDN reports whether the update is to a release without OpenShift SDN from one
// with it: 4.17 and its prereleases are the first without.
func removesSDN(u update.Update) bool {
	first := semver.Version{Major: 4, Minor: 17, Pre: []semver.PRVersion{{VersionNum: 0, IsNum: true}}}
	return u.From.LT(first) && u.To.GTE(first)
}

func judgeNetworkType(read gap.Extent, networks []configv1.Network, target semver.Version) finding.Finding {
	const maxType = 64
	current := ""
	for i := range networks {
		if networks[i].Name == "cluster" {
			current = words.Line(networks[i].Status.NetworkType, maxType)
		}
	}
	inspect := finding.Read("oc get network.config cluster -o yaml")
	switch current {
	case "":
		return finding.Unknown(reasonNetworkTypeNotReported,
			"Network \"cluster\" does not report its network type, and %s does not support OpenShiftSDN", target).
			Do(finding.Read("oc -n openshift-network-operator get pods"), inspect)
	case "OpenShiftSDN":
		return finding.Fail(reasonOpenShiftSDNRemoved, "the cluster uses the network type OpenShiftSDN, which %s does not include", target).
			Remedy("Migrate the cluster to OVN-Kubernetes before the update.").
			Documented(
				"https://docs.redhat.com/en/documentation/openshift_container_platform/4.16/html/networking/ovn-kubernetes-network-plugin#migrate-from-openshift-sdn").
			Do(inspect)
	}
	return finding.Pass(read, reasonNetworkTypeSupported, "%s supports the network type %s", target, current)
}
