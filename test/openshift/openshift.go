// Package openshift answers: what makes a plain Kubernetes an OpenShift cluster
// to a preflight? It writes the objects that a cluster-version operator would:
// the ClusterVersion, the keys that releases are verified with, the admin gates.
package openshift

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/release"
)

// ClusterID is the ID of every cluster that Apply describes.
const ClusterID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

// State is what the cluster says of itself.
type State struct {
	// Version and Image are the release that the cluster runs.
	Version, Image string
	// Available maps the versions of the available updates to pull specs.
	Available map[string]string
	// Keys are the armored keyrings by name, Stores the URLs of the signature
	// stores by name, and Signatures the signatures that the cluster keeps.
	Keys       map[string][]byte
	Stores     map[string]string
	Signatures release.Store
	// Gates and Acks are the data of admin-gates and admin-acks.
	Gates, Acks map[string]string
	// Namespaces exist besides those of the ConfigMaps.
	Namespaces []string
}

// Apply makes the cluster say so, whatever it said before.
func Apply(ctx context.Context, config *rest.Config, state State) error {
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{} // of fields that only some feature sets have
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	openshift, err := configclient.NewForConfig(config)
	if err != nil {
		return err
	}
	namespaces := append([]string{"openshift-config", "openshift-config-managed", "openshift-cluster-version"}, state.Namespaces...)
	for _, name := range namespaces {
		if err := createNamespace(ctx, core, name); err != nil {
			return err
		}
	}
	for _, configMap := range state.configMaps() {
		if err := replace(ctx, core, configMap); err != nil {
			return err
		}
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

func applyClusterVersion(ctx context.Context, openshift configclient.Interface, state State) error {
	client := openshift.ConfigV1().ClusterVersions()
	current, err := client.Get(ctx, "version", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		current, err = client.Create(ctx, &configv1.ClusterVersion{
			ObjectMeta: metav1.ObjectMeta{Name: "version"},
			Spec:       configv1.ClusterVersionSpec{ClusterID: ClusterID, Channel: "stable"},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("could not write ClusterVersion: %w", err)
	}
	current.Status = state.clusterVersionStatus()
	current.Status.ObservedGeneration = current.Generation
	if _, err := client.UpdateStatus(ctx, current, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("could not write the status of ClusterVersion: %w", err)
	}
	return nil
}

func (s State) clusterVersionStatus() configv1.ClusterVersionStatus {
	now := metav1.Now()
	status := configv1.ClusterVersionStatus{
		Desired: configv1.Release{Version: s.Version, Image: s.Image},
		History: []configv1.UpdateHistory{{
			State: configv1.CompletedUpdate, Version: s.Version, Image: s.Image, StartedTime: now, CompletionTime: &now, Verified: true,
		}},
		VersionHash:      "0",
		AvailableUpdates: []configv1.Release{},
		Conditions: []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: now},
			{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, LastTransitionTime: now},
			{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue, LastTransitionTime: now},
			{Type: "Failing", Status: configv1.ConditionFalse, LastTransitionTime: now},
		},
	}
	for version, image := range s.Available {
		status.AvailableUpdates = append(status.AvailableUpdates, configv1.Release{Version: version, Image: image})
	}
	return status
}
