// Package openshift answers: which objects make a plain Kubernetes an OpenShift cluster
// for a preflight? It writes the objects of the cluster-version operator: the
// ClusterVersion, the keys that verify releases, the admin gates.
package openshift

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/release"
)

// ClusterID is the ID of a cluster whose State has none.
const ClusterID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

// State is the configuration and the status of the cluster.
type State struct {
	// ID is that of the cluster; empty means ClusterID.
	ID configv1.ClusterID
	// Version and Image are the release that the cluster runs, since Since; zero means now.
	Version, Image string
	Since          time.Time
	// Channel is the update channel; empty means "stable".
	Channel string
	// Upstream is the URL of the update service; empty means the public one.
	Upstream string
	// Desired and Overrides are those of the spec of ClusterVersion.
	Desired   *configv1.Update
	Overrides []configv1.ComponentOverride
	// Available maps the versions of the available updates to pull specs,
	// Conditional are the conditional updates, and Risks the risks in the status
	// of ClusterVersion, if its feature set has that field.
	Available   map[string]string
	Conditional []configv1.ConditionalUpdate
	Risks       []configv1.ConditionalUpdateRisk
	// Past are the updates before the present release, newest first. While
	// Updating is set, the present release is an update in progress.
	Past     []configv1.UpdateHistory
	Updating bool
	// Conditions of ClusterVersion replace those of a healthy cluster.
	Conditions []configv1.ClusterOperatorStatusCondition
	// Operators are all ClusterOperators.
	Operators []configv1.ClusterOperator
	// Topology is the topology of the control plane in the Infrastructure. Empty
	// means no Infrastructure, as on a plain Kubernetes.
	Topology configv1.TopologyMode
	// Keys are the armored keyrings by name, Stores the URLs of the signature
	// stores by name, and Signatures the signatures in ConfigMaps of the cluster.
	Keys       map[string][]byte
	Stores     map[string]string
	Signatures release.Store
	// Gates and Acks are the data of admin-gates and admin-acks.
	Gates, Acks map[string]string
	// Namespaces are created in addition to those of the ConfigMaps.
	Namespaces []string
}

// Namespaces are those that every cluster has.
func Namespaces() []string {
	return []string{
		"openshift-config", "openshift-config-managed", "openshift-cluster-version", "openshift-kube-apiserver-operator",
		"openshift-monitoring",
	}
}

// Apply writes the state to the cluster, and replaces the former one.
func Apply(ctx context.Context, config *rest.Config, state State) error {
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{} // about fields of other feature sets
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	openshift, err := configclient.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, name := range append(Namespaces(), state.Namespaces...) {
		if err := createNamespace(ctx, core, name); err != nil {
			return err
		}
	}
	if err := bindOperator(ctx, core); err != nil {
		return err
	}
	for _, configMap := range state.configMaps() {
		if err := replace(ctx, core, configMap); err != nil {
			return err
		}
	}
	if err := applyInfrastructure(ctx, openshift, state.Topology); err != nil {
		return err
	}
	if err := applyOperators(ctx, openshift, state.Operators); err != nil {
		return err
	}
	return applyClusterVersion(ctx, openshift, state)
}

func (s State) configMaps() []*corev1.ConfigMap {
	maps := []*corev1.ConfigMap{
		release.VerificationConfigMap(s.Keys, s.Stores),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "admin-gates"}, Data: s.Gates},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "admin-acks"}, Data: s.Acks},
	}
	if len(s.Signatures) > 0 {
		maps = append(maps, s.Signatures.ConfigMap("signatures"))
	}
	return maps
}

// bindOperator gives the account of CVO its rights (cluster-version-operator, install/0000_00_cluster-version-operator_02_roles.yaml).
func bindOperator(ctx context.Context, core kubernetes.Interface) error {
	_, err := core.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-version-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "openshift-cluster-version", Name: "default"}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func createNamespace(ctx context.Context, core kubernetes.Interface, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := core.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func replace(ctx context.Context, core kubernetes.Interface, configMap *corev1.ConfigMap) error {
	client := core.CoreV1().ConfigMaps(configMap.Namespace)
	_, err := client.Update(ctx, configMap, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, configMap, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("could not write ConfigMap %s/%s: %w", configMap.Namespace, configMap.Name, err)
	}
	return nil
}
