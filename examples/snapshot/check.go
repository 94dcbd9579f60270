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

// directory has a file for each CustomResourceDefinition of the target, with the
// versions that the target serves.
type directory string

func (d directory) judge(ctx context.Context, t *preflight.T) error {
	crds, errCRDs := connect(apiextensions.NewForConfig)
	objects, errObjects := connect(metadata.NewForConfig)
	files, errFiles := filepath.Glob(filepath.Join(string(d), "*.k8s.io"))
	if err := cmp.Or(errCRDs, errObjects, errFiles); err != nil || len(files) == 0 {
		return cmp.Or(err, fmt.Errorf("no CustomResourceDefinition in %q, which TARGET_CRDS names", d))
	}
	for _, file := range files {
		versions, errRead := os.ReadFile(file) //nolint:gosec // The directory is the caller's own.
		crd, err := crds.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, filepath.Base(file), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err := cmp.Or(errRead, err); err != nil {
			return fmt.Errorf("cannot compare the definitions: %w", err)
		}
		target := strings.Fields(string(versions))
		storage := judgeStored(t, crd, target)
		resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: storage, Resource: crd.Spec.Names.Plural}
		if err := judgeWritten(ctx, t, objects.Resource(resource), target); err != nil {
			return err
		}
	}
	return nil
}

// judgeStored fails for versions without which the API server would refuse the
// target's definition: status.storedVersions have to be in spec.versions.
func judgeStored(t *preflight.T, crd *apiextensionsv1.CustomResourceDefinition, target []string) (storage string) {
	storage = crd.Spec.Versions[slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })].Name
	for _, version := range crd.Status.StoredVersions {
		if !slices.Contains(target, version) {
			t.Reason("VersionDropped")
			t.Failf("objects of %s may be stored as %s, but the target has only %v", crd.Name, version, target)
			t.Object(preflight.Object{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: crd.Name})
			if version == storage {
				t.Remedyf("Update to a release in between first, which stores %s as one of %v.", crd.Name, target)
				continue
			}
			t.Remedyf("oc get %s -A -o json | oc replace -f - # stores each anew, if there are any; then:", crd.Name)
			t.Remedyf(`oc patch crd %s --subresource=status --type=merge -p '{"status":{"storedVersions":[%q]}}'`, crd.Name, storage)
		}
	}
	return storage
}

// judgeWritten warns of a client that last wrote an object in a version that the
// target does not serve. Of those that only read, the API server has no record.
func judgeWritten(ctx context.Context, t *preflight.T, objects metadata.ResourceInterface, target []string) error {
	list, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list what is stored: %w", err)
	}
	for _, object := range list.Items {
		for _, entry := range object.ManagedFields {
			if _, version, _ := strings.Cut(entry.APIVersion, "/"); !slices.Contains(target, version) {
				t.Reason("VersionDropped")
				t.Warnf("%q wrote %s as %s, which the target does not serve", entry.Manager, object.Name, entry.APIVersion)
				t.Remedyf("Have %s use version %v, or it will get errors.", entry.Manager, target)
				return nil // One is enough to go by.
			}
		}
	}
	return nil
}

// connect finds the cluster as oc does; in a pod, that of the pod.
func connect[C any](client func(*rest.Config) (C, error)) (C, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return *new(C), fmt.Errorf("cannot find the cluster: %w", err)
	}
	return client(config)
}
