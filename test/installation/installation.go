// Package installation answers: how is the controller of manifests/ installed on a local
// cluster?
//
// It is installed as by an administrator, with a kustomization of manifests/kubernetes that
// sets the image and the switches (Overlay), or as by OLM, from its bundle (OpenBundle). The image
// is built and pushed without a container engine.
package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/bundle"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
)

// pollInterval is the time between two lists of the records.
const pollInterval = 200 * time.Millisecond

// ConnectRegistry configures a mirror of the local registry that pods can reach. A release
// refers to its images by an address that only this machine can reach.
func ConnectRegistry(ctx context.Context, c *cluster.Cluster) error {
	exposed, err := c.Expose(ctx, c.Registry)
	if err != nil {
		return err
	}
	return openshift.Mirror(ctx, c.Config, c.Registry, exposed)
}

// Overlay is a kustomization of manifests/kubernetes. All fields but Image are optional.
type Overlay struct {
	// Image is the pull spec of the controller, by digest.
	Image string
	// Args are further arguments of the controller.
	Args []string
	// Switches are names of directories in manifests/switches.
	Switches []string
}

// Write writes the kustomization to directory. Root is the root of the repository.
func (o Overlay) Write(root, directory string) error {
	manifests, err := relative(directory, filepath.Join(root, "manifests"))
	if err != nil {
		return err
	}
	name, digest, found := strings.Cut(o.Image, "@")
	if !found {
		return fmt.Errorf("the image %q of the controller has no digest", o.Image)
	}
	kustomization := map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"resources": []string{filepath.Join(manifests, "kubernetes")},
		"images":    []any{map[string]string{"name": bundle.ImageName, "newName": name, "digest": digest}},
	}
	if len(o.Switches) > 0 {
		var components []string
		for _, each := range o.Switches {
			components = append(components, filepath.Join(manifests, "switches", each))
		}
		kustomization["components"] = components
	}
	if len(o.Args) > 0 {
		kustomization["patches"] = []any{o.patch()}
	}
	text, err := yaml.Marshal(kustomization)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, "kustomization.yaml"), text, 0o600)
}

// relative returns the path of target relative to directory. A kustomization accepts no
// absolute paths.
func relative(directory, target string) (string, error) {
	from, err := filepath.Abs(directory)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(target)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// patch returns the patch that adds the arguments to the Deployment.
func (o Overlay) patch() map[string]any {
	var operations strings.Builder
	for _, arg := range o.Args {
		fmt.Fprintf(&operations, "- {op: add, path: /spec/template/spec/containers/0/args/-, value: %q}\n", arg)
	}
	return map[string]any{"target": map[string]string{"kind": "Deployment", "name": "update-preflight"}, "patch": operations.String()}
}

// AwaitRun waits for a complete run of a version by a requester, and returns the newest one.
// If there is none before ctx ends, it returns the error of ctx.
func AwaitRun(ctx context.Context, c *cluster.Cluster, version string, requester record.Requester) (record.Record, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return record.Record{}, err
	}
	records := recordstore.New(client)
	var newest record.Record
	var last error
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		var listed []record.Record
		listed, last = records.List(ctx)
		for _, each := range listed {
			matches := each.Target.Version == version && each.Requester == requester && each.Phase == record.Complete
			if matches && each.CompletionTime.After(newest.CompletionTime) {
				newest = each
			}
		}
		return newest.ID != "", nil
	})
	if err != nil {
		return record.Record{}, fmt.Errorf("no run of %s by %q is complete: %w", version, requester, errors.Join(err, last))
	}
	return newest, nil
}
