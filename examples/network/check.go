package main

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// inProgress is the condition of a live migration (cluster-network-operator
// pkg/names).
const inProgress = "NetworkTypeMigrationInProgress"

// networkType fails for a plugin that the target does not have, and for one
// that is being exchanged; it warns of an MTU that is.
func networkType(ctx context.Context, t *preflight.T) error {
	network, err := read(ctx)
	if err != nil {
		return err
	}
	t.Object(preflight.Object{APIVersion: "config.openshift.io/v1", Kind: "Network", Name: network.Name})
	t.Evidence("networkType", network.Status.NetworkType)
	migration := network.Status.Migration
	switch {
	case meta.IsStatusConditionTrue(network.Status.Conditions, inProgress):
		t.Reason("MigrationInProgress")
		t.Failf("a live migration of the network plugin is under way, and nodes may have either of the two")
		remedyWait(t)
		return nil
	case migration != nil && migration.NetworkType != "":
		t.Reason("MigrationInProgress")
		t.Failf("an offline migration of the network plugin to %s is not finished", migration.NetworkType)
		t.Remedyf("Finish its steps; when all nodes have rebooted, the last one is:")
		t.Remedyf(`oc patch network.operator.openshift.io cluster --type=merge -p '{"spec":{"migration":null}}'`)
		return nil
	case migration != nil && migration.MTU != nil:
		t.Reason("MigrationInProgress")
		t.Warnf("the MTU of the network is being changed, which reboots all nodes, as the update will once more")
		t.Remedyf("oc wait machineconfigpool --all --for=condition=Updated --timeout=2h")
	}
	return judge(t, network.Status.NetworkType)
}

// judge knows the plugins that the network operator has, and those it had.
func judge(t *preflight.T, plugin string) error {
	switch plugin {
	case "":
		return errors.New("status.networkType is empty: the network operator has not said which plugin runs")
	case "OVNKubernetes":
	case "OpenShiftSDN":
		t.Reason("NetworkTypeRemoved")
		t.Failf("the cluster runs OpenShiftSDN, which the target does not have: pods would be without a network")
		t.Remedyf("Read about the limits of the live migration, then start it and wait for its end:")
		t.Remedyf(`oc patch network.config.openshift.io cluster --type=merge -p ` +
			`'{"metadata":{"annotations":{"network.openshift.io/network-type-migration":""}},"spec":{"networkType":"OVNKubernetes"}}'`)
		remedyWait(t)
	default:
		t.Skipf("%s is not a plugin of the network operator: ask its vendor about %s", plugin, t.Update().To)
	}
	return nil
}

func remedyWait(t *preflight.T) {
	t.Remedyf("oc wait network.config.openshift.io/cluster --for=jsonpath='{.status.networkType}'=OVNKubernetes --timeout=12h")
	t.Remedyf("oc wait network.config.openshift.io/cluster --for=condition=%s=false --timeout=12h", inProgress)
}

// read finds the cluster as oc does; in a pod, that of the pod.
func read(ctx context.Context) (*configv1.Network, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find the cluster: %w", err)
	}
	client, err := configclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	network, err := client.Networks().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of the network: %w", err)
	}
	return network, nil
}
