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

// inProgress is the type of the condition for a live migration
// (cluster-network-operator pkg/names).
const inProgress = "NetworkTypeMigrationInProgress"

// networkType fails for a plugin that the target does not have and during a migration
// of the plugin. It warns during a migration of the MTU.
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
		t.Failf("a live migration of the network plugin is in progress, and nodes may run either plugin")
		remedyWait(t)
		return nil
	case migration != nil && migration.NetworkType != "":
		t.Reason("MigrationInProgress")
		t.Failf("an offline migration of the network plugin to %s is in progress", migration.NetworkType)
		t.Remedyf("Complete the migration. After all nodes have rebooted, run its last step.")
		t.Commandf(`oc patch network.operator.openshift.io cluster --type=merge -p '{"spec":{"migration":null}}'`)
		return nil
	case migration != nil && migration.MTU != nil:
		t.Reason("MigrationInProgress")
		t.Warnf("a migration of the MTU is in progress, which reboots all nodes in addition to the update")
		t.Remedyf("Wait until all nodes have rebooted.")
		t.Commandf("oc wait machineconfigpool --all --for=condition=Updated --timeout=2h")
	}
	return checkPlugin(t, network.Status.NetworkType)
}

// checkPlugin compares the plugin with those that the target has and had.
func checkPlugin(t *preflight.T, plugin string) error {
	switch plugin {
	case "":
		return errors.New("status.networkType of networks.config.openshift.io/cluster is empty")
	case "OVNKubernetes":
	case "OpenShiftSDN":
		t.Reason("NetworkTypeRemoved")
		t.Failf("the cluster runs OpenShiftSDN, which the target does not have: pods would have no network")
		t.Remedyf("Read the limitations of the live migration, then start it.")
		t.Commandf(`oc patch network.config.openshift.io cluster --type=merge -p ` +
			`'{"metadata":{"annotations":{"network.openshift.io/network-type-migration":""}},"spec":{"networkType":"OVNKubernetes"}}'`)
		remedyWait(t)
	default:
		t.Skipf("%s is not a plugin of the network operator: its vendor decides about %s", plugin, t.Update().To)
	}
	return nil
}

func remedyWait(t *preflight.T) {
	t.Remedyf("Wait until the migration completes.")
	t.Commandf("oc wait network.config.openshift.io/cluster --for=jsonpath='{.status.networkType}'=OVNKubernetes --timeout=12h")
	t.Commandf("oc wait network.config.openshift.io/cluster --for=condition=%s=false --timeout=12h", inProgress)
}

// read returns the configuration of the network. It connects with the same
// configuration as oc; in a pod, the configuration of the pod.
func read(ctx context.Context) (*configv1.Network, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot load the configuration of the cluster: %w", err)
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
