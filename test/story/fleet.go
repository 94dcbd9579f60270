package story

import (
	"context"
	"os"
	"path/filepath"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/release"
)

// The clusters of the fleet, each named after what keeps it from the update. FleetAway is in order, but
// its API server has ended.
const (
	FleetAck       = "edge-1"
	FleetOverrides = "edge-2"
	FleetBudget    = "edge-3"
	FleetRisk      = "edge-4"
	FleetAway      = "edge-5"
)

// FleetClusters are the names of the clusters of the fleet.
func FleetClusters() []string {
	return []string{FleetAck, FleetOverrides, FleetBudget, FleetRisk, FleetAway}
}

// Risk is the risk of the conditional update of FleetRisk.
const Risk = "SlowRoutesOnOneZone"

// Fleet are clusters with what they share.
type Fleet struct {
	// Clusters have simulated nodes, by name.
	Clusters map[string]*cluster.Cluster
	// Registry is the host:port of the registry of the release.
	Registry string
	// Monitoring is the monitoring of all clusters.
	Monitoring Monitoring
	// Release is the pull spec of To; PrepareFleet sets it.
	Release string
}

// Monitoring is a querier that clusters find by their Route.
type Monitoring struct {
	// Host is its host:port, with TLS.
	Host string
	// CA is its certificate, PEM.
	CA []byte
}

// Kubeconfig writes a kubeconfig with the contexts of the clusters, and returns its path.
func (f Fleet) Kubeconfig(directory string) (string, error) {
	all := clientcmdapi.NewConfig()
	for name, member := range f.Clusters {
		config, err := clientcmd.LoadFromFile(member.Kubeconfig)
		if err != nil {
			return "", err
		}
		current := config.Contexts[config.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	path := filepath.Join(directory, "fleet.kubeconfig")
	return path, clientcmd.WriteToFile(*all, path)
}

// PrepareFleet pushes the release To, whose check runs in each cluster, and creates the objects of the
// clusters: an acknowledgement is missing in one, another has an override, the budget of the third
// never allows a drain, and the fourth has a risk. Files are written to directory.
func PrepareFleet(ctx context.Context, fleet *Fleet, directory string, step func(string)) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	step("building the release " + To + " with a check, and signing it")
	pullSpec, err := pushFleet(ctx, fleet.Registry, root)
	if err != nil {
		return err
	}
	signer, err := release.NewSigner("Story Release Key")
	if err != nil {
		return err
	}
	fleet.Release = pullSpec
	present, err := state(pullSpec, To, signer, directory)
	if err != nil {
		return err
	}
	step("creating the objects of the clusters: four have a cause against the update, each another one")
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range FleetClusters() {
		of := present
		of.ID = clusterID(name)
		of.Namespaces, of.Gates = []string{"openshift-network-operator"}, map[string]string{}
		group.Go(func() error { return fleet.prepare(ctx, name, of, root) })
	}
	return group.Wait()
}

// pushFleet pushes the release of the fleet. Nothing runs its image.
func pushFleet(ctx context.Context, registry, root string) (string, error) {
	check, err := os.ReadFile(filepath.Join(root, "test", "story", "fleet-check.yaml")) //nolint:gosec // the repository's own file
	if err != nil {
		return "", err
	}
	image, err := release.BuildImage(ctx, registry, "cluster-network-operator", release.Image{})
	if err != nil {
		return "", err
	}
	return release.Push(ctx, registry, release.Release{Version: To, Previous: []string{From}, Components: []release.Component{{
		Name: "cluster-network-operator", Image: image, Source: "quay.io/openshift/origin-cluster-network-operator",
		Manifests: map[string]string{"0000_70_cluster-network-operator_10_preflight.yaml": string(check)},
	}}})
}

// prepare creates the objects of a cluster.
func (f Fleet) prepare(ctx context.Context, name string, of openshift.State, root string) error {
	member := f.Clusters[name]
	switch name {
	case FleetAck:
		of.Gates = map[string]string{Gate: gateText}
	case FleetOverrides:
		of.Overrides = []configv1.ComponentOverride{{
			Group: "apps", Kind: "Deployment", Namespace: "openshift-network-operator",
			Name: "network-operator", Unmanaged: true,
		}}
	case FleetRisk:
		of.Conditional = []configv1.ConditionalUpdate{conditional(of.Available[To])}
		of.Available = nil
	}
	if err := openshift.Apply(ctx, member.Config, of); err != nil {
		return err
	}
	if err := f.Monitoring.route(ctx, member); err != nil {
		return err
	}
	if err := applyPool(ctx, member, root); err != nil || name != FleetBudget {
		return err
	}
	return applyShop(ctx, member, root, f.Registry)
}

// conditional is the update To with a risk that applies to every cluster.
func conditional(image string) configv1.ConditionalUpdate {
	return configv1.ConditionalUpdate{
		Release: configv1.Release{Version: To, Image: image},
		Risks: []configv1.ConditionalUpdateRisk{{
			Name: Risk, Message: "Routes are slow in clusters whose nodes are in one zone.", URL: "https://example.com/" + Risk,
			MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
		}},
		Conditions: []metav1.Condition{{
			Type: "Recommended", Status: metav1.ConditionFalse, Reason: Risk, LastTransitionTime: metav1.Now(),
			Message: "Routes are slow in clusters whose nodes are in one zone. https://example.com/" + Risk,
		}},
	}
}

// RouteOfAlerts is the Route in openshift-monitoring that the router of FleetOverrides does not admit after the update.
const RouteOfAlerts = "alertmanager-main"

// route creates the Routes of the monitoring, by one of which a cluster finds it, with the certificate of its ingress.
func (m Monitoring) route(ctx context.Context, of *cluster.Cluster) error {
	client, err := dynamic.NewForConfig(of.Config)
	if err != nil {
		return err
	}
	for name, host := range map[string]string{"thanos-querier": m.Host, RouteOfAlerts: "alertmanager-main.example.com"} {
		_, err := routes(client).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"to": map[string]any{"kind": "Service", "name": name, "weight": int64(100)}},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if err := admit(ctx, client, name, host, metav1.ConditionTrue); err != nil {
			return err
		}
	}
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("openshift-config-managed").Create(
		ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "default-ingress-cert"},
			"data": map[string]any{"ca-bundle.crt": string(m.CA)},
		}}, metav1.CreateOptions{})
	return err
}

// FleetRemedies are the actions after which no cluster has a cause against the update but the risk, for
// the kubeconfig of the fleet: the commands of the table, of which those of oc are of kubectl here.
func FleetRemedies() []Remedy {
	return []Remedy{
		{
			Why:     FleetAck + ": acknowledge the admin gate, after doing what it requires",
			Command: []string{"oc-preflight", "ack", Gate, "--context", FleetAck},
		},
		{
			Why: FleetOverrides + ": remove the override",
			Command: []string{
				"kubectl", "--context", FleetOverrides, "patch", "clusterversion", "version", "--type=json", "-p",
				`[{"op":"remove","path":"/spec/overrides"}]`,
			},
		},
		{
			Why: FleetBudget + ": let the budget allow one eviction",
			Command: []string{
				"kubectl", "--context", FleetBudget, "-n", "shop", "patch", "pdb", "orders", "--type=merge", "-p",
				`{"spec":{"maxUnavailable":1}}`,
			},
		},
	}
}

// routes are those of the monitoring.
func routes(client dynamic.Interface) dynamic.ResourceInterface {
	return client.Resource(schema.GroupVersionResource{Group: "route.openshift.io", Version: "v1", Resource: "routes"}).Namespace(
		"openshift-monitoring")
}

// admit reports whether the router admits a Route of the monitoring, in place of the router.
func admit(ctx context.Context, client dynamic.Interface, name, host string, status metav1.ConditionStatus) error {
	route, err := routes(client).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	route.Object["status"] = map[string]any{"ingress": []any{map[string]any{
		"host": host, "routerName": "default",
		"conditions": []any{map[string]any{
			"type": "Admitted", "status": string(status), "lastTransitionTime": time.Now().Add(-brokenAge).UTC().Format(time.RFC3339),
		}},
	}}}
	_, err = routes(client).UpdateStatus(ctx, route, metav1.UpdateOptions{})
	return err
}

// Update reports that a cluster is updated to To, as [Update] does. In FleetOverrides, the router does not admit a Route
// since then.
func (f Fleet) Update(ctx context.Context, name string) error {
	if err := Update(ctx, f.Clusters[name], f.Release); err != nil || name != FleetOverrides {
		return err
	}
	client, err := dynamic.NewForConfig(f.Clusters[name].Config)
	if err != nil {
		return err
	}
	return admit(ctx, client, RouteOfAlerts, "alertmanager-main.example.com", metav1.ConditionFalse)
}
