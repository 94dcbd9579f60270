package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// directory contains a file for each CustomResourceDefinition of the target with the
// versions that the target serves.
type directory string

// versionsInUse compares the versions in the cluster with the target's.

func (d directory) versionsInUse(ctx context.Context, t *preflight.T) error {
	crds, errCRDs := connect(apiextensions.NewForConfig)
	objects, errObjects := connect(metadata.NewForConfig)
	files, errFiles := filepath.Glob(filepath.Join(string(d), "*.k8s.io"))
	if err := cmp.Or(errCRDs, errObjects, errFiles); err != nil || len(files) == 0 {
		return cmp.Or(err, fmt.Errorf("no CustomResourceDefinition in %q, the directory in TARGET_CRDS", d))
	}
	for _, file := range files {
		versions, errRead := os.ReadFile(file) //nolint:gosec // The caller sets the directory.
		crd, err := crds.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, filepath.Base(file), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err := cmp.Or(errRead, err); err != nil {
			return fmt.Errorf("cannot compare the definitions: %w", err)
		}
		target := strings.Fields(string(versions))
		storage := checkStored(t, crd, target)
		resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: storage, Resource: crd.Spec.Names.Plural}
		if err := checkWritten(ctx, t, objects.Resource(resource), target); err != nil {
			return err
		}
	}
	return nil
}

// checkStored fails for stored versions that the target does not have. The API server
// rejects a definition unless spec.versions contains every status.storedVersions.
func checkStored(t *preflight.T, crd *apiextensionsv1.CustomResourceDefinition, target []string) (storage string) {
	storage = crd.Spec.Versions[slices.IndexFunc(crd.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })].Name
	for _, version := range crd.Status.StoredVersions {
		if !slices.Contains(target, version) {
			t.Reason("VersionDropped")
			t.Failf("objects of %s may be stored as %s, but the target only has %v", crd.Name, version, target)
			t.Object(preflight.Object{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: crd.Name})
			if version == storage {
				t.Remedyf("Update to an intermediate release first that stores %s as one of %v.", crd.Name, target)
				continue
			}
			t.Remedyf("Rewrite every object of %s, then remove the version from its status.", crd.Name)
			t.Commandf("oc get %s -A -o json | oc replace -f -", crd.Name)
			t.Commandf(`oc patch crd %s --subresource=status --type=merge -p '{"status":{"storedVersions":[%q]}}'`, crd.Name, storage)
		}
	}
	return storage
}

// checkWritten warns of a client that last wrote an object in a version that the target
// does not serve. The API server has no record of clients that only read.
func checkWritten(ctx context.Context, t *preflight.T, objects metadata.ResourceInterface, target []string) error {
	list, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list the objects: %w", err)
	}
	for _, object := range list.Items {
		for _, entry := range object.ManagedFields {
			if _, version, _ := strings.Cut(entry.APIVersion, "/"); !slices.Contains(target, version) {
				t.Reason("VersionDropped")
				t.Warnf("%q wrote %s as %s, which the target does not serve", entry.Manager, object.Name, entry.APIVersion)
				t.Remedyf("Update %s to use version %v before the update.", entry.Manager, target)
				return nil // One client is sufficient.
			}
		}
	}
	return nil
}

// connect uses the same configuration as oc; in a pod, the configuration of the pod.
func connect[C any](client func(*rest.Config) (C, error)) (C, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return *new(C), fmt.Errorf("cannot load the configuration of the cluster: %w", err)
	}
	return client(config)
}
